package webhook

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/turn"
	"github.com/agentplatform/agentplatform/pkg/webhook"
)

// PollWebhookRun answers GET /webhooks/{webhookId}/runs/{runId}: how far a run is, for whoever has the webhook's token.
func PollWebhookRun(env *handler.Env) lambda.Handler {
	db := env.DB()
	return handler.REST(func(ctx context.Context, r *handler.Request) (handler.Reply, error) {
		door, err := webhook.Enter(ctx, db, r.Params["webhookId"], r.Bearer())
		if err != nil {
			return handler.Reply{}, err
		}
		run, err := turn.GetRun(ctx, db.In(door.TenantID), door.WebhookID, r.Params["runId"])
		return handler.Reply{Body: run}, err
	})
}
