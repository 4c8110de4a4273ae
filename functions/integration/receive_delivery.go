package integration

import (
	"context"
	"log/slog"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/channel"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/integration"
	"github.com/agentplatform/agentplatform/pkg/notify"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// taken is what a provider is told that nobody asked it to read.
type taken struct {
	Outcome    integration.Outcome `json:"outcome"`
	DeliveryID string              `json:"delivery_id,omitempty"` // none: there was nothing to do, and the log does not have it
	ThreadID   *string             `json:"thread_id,omitempty"`
}

// ReceiveDelivery answers POST /integrations/{integrationId}/webhook: what it brings is committed, then it is answered; the turn runs later.
func ReceiveDelivery(env *handler.Env) lambda.Handler {
	db := env.DB()
	receiver := integration.NewReceiver(db, integration.NewSecrets(env.IntegrationSecretsReader()))
	after := follow{db: db, to: env.Publish(), dispatch: env.Invoke("dispatch-turn"), reply: env.Invoke("deliver-replies"), signal: env.Signal()}
	return handler.REST(func(ctx context.Context, r *handler.Request) (handler.Reply, error) {
		body, broken := r.Body()
		got, err := receiver.Receive(ctx, r.Params["integrationId"], channel.Inbound{Header: r.Header, Body: body, Now: time.Now()}, broken)
		if got.RetryAfter > 0 {
			seconds := int((got.RetryAfter + time.Second - 1) / time.Second)
			return handler.Reply{Headers: map[string]string{"Retry-After": strconv.Itoa(seconds)}}, err
		}
		if err != nil {
			return handler.Reply{}, err
		}
		if got.Answer != nil {
			return handler.Reply{Body: got.Answer}, nil
		}
		after.taken(ctx, got.Taken)
		return handler.Reply{Body: taken{got.Delivery.Outcome, got.Delivery.ID, got.Delivery.ThreadID}}, nil
	})
}

// follow is what comes after something was taken in.
type follow struct {
	db       *postgres.DB
	to       publish.Publisher
	dispatch func(ctx context.Context, payload any) error
	reply    func(ctx context.Context, payload any) error
	signal   func(point string)
}

// taken dispatches the turn before anything that may be slow: the provider gives up after a few seconds, and the function ends soon after.
func (f follow) taken(ctx context.Context, t integration.Taken) {
	tenantID := t.Delivery.TenantID
	if t.Refusal != "" {
		if err := f.reply(ctx, integration.ReplyTask{TenantID: tenantID, ReplyID: t.Refusal}); err != nil {
			slog.WarnContext(ctx, "that there is no answer is posted later: the function was not started", "tenant_id", tenantID, "error", err)
		}
	}
	if t.TurnID == "" {
		return
	}
	f.signal("delivery taken in")
	if err := f.dispatch(ctx, turn.Dispatch{TenantID: tenantID, TurnID: t.TurnID}); err != nil {
		slog.WarnContext(ctx, "dispatch failed; the reaper tries again", "tenant_id", tenantID, "turn_id", t.TurnID, "error", err)
	}
	ctx, cancel := context.WithTimeout(ctx, publishTime)
	defer cancel()
	notify.Deliver(ctx, f.db, f.to, tenantID, t.Notices...)
}

// publishTime is how long the answer waits until the message is published: providers wait for seconds, and what was not published is the sweep's.
const publishTime = time.Second
