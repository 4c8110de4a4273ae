package webhook

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/webhook"
)

// sample is what a test without a body is called with.
const sample = `{"message":"This is a test of the webhook.","context":{"test":true}}`

// TestWebhook answers POST /api/webhooks/{webhookId}/test: a call by hand, with the given body or a sample, also of a disabled webhook and
// beside the rate limit. Its run is marked as a test.
func TestWebhook(env *handler.Env) lambda.Handler {
	db := env.DB()
	starts := starter{db, env.Invoke("dispatch-turn"), env.Call("start-run"), env.Signal()}
	return handler.REST(func(ctx context.Context, r *handler.Request) (handler.Reply, error) {
		caller, err := tenant.OwnerOrAdmin(ctx)
		if err != nil {
			return handler.Reply{}, err
		}
		said, err := payload(r, sample)
		if err != nil {
			return handler.Reply{}, err
		}
		w, err := webhook.Get(ctx, db.In(caller.TenantID), r.Params["webhookId"])
		if err != nil {
			return handler.Reply{}, err
		}
		if w.TargetType == webhook.Task {
			return handler.Reply{}, fault.Invalid("a webhook of target_type task starts nothing: its tracker tests it")
		}
		return starts.start(ctx, caller.TenantID, webhook.Invocation{WebhookID: w.ID, Payload: said, Test: true})
	})
}
