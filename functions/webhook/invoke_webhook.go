package webhook

import (
	"context"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/webhook"
)

// InvokeWebhook answers POST /webhooks/{webhookId}, in this order: token, disabled, rate limit, body, Idempotency-Key, target.
func InvokeWebhook(env *handler.Env) lambda.Handler {
	db := env.DB()
	starts := starter{db, env.Invoke("dispatch-turn"), env.Call("start-run"), env.Signal()}
	var window webhook.Window // of this instance
	return handler.REST(func(ctx context.Context, r *handler.Request) (handler.Reply, error) {
		door, err := webhook.Enter(ctx, db, r.Params["webhookId"], r.Bearer())
		if err != nil {
			return handler.Reply{}, err
		}
		if wait := window.Take(door.WebhookID, door.RateLimit); wait > 0 {
			seconds := int((wait + time.Second - 1) / time.Second)
			return handler.Reply{Headers: map[string]string{"Retry-After": strconv.Itoa(seconds)}},
				fault.New(fault.RateLimitExceeded, "the webhook's limit of %d calls a minute is reached", door.RateLimit)
		}
		said, err := payload(r, `{}`)
		if err != nil {
			return handler.Reply{}, err
		}
		key := r.Header("Idempotency-Key")
		if err := webhook.CheckKey(key); err != nil {
			return handler.Reply{}, err
		}
		started, err := starts.start(ctx, door.TenantID, webhook.Invocation{WebhookID: door.WebhookID, Key: key, Payload: said})
		if fault.IsMissing(err) { // deleted meanwhile
			err = webhook.ErrToken
		}
		return started, err
	})
}
