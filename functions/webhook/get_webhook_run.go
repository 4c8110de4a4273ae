package webhook

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/turn"
	"github.com/agentplatform/agentplatform/pkg/webhook"
)

// GetWebhookRun answers GET /api/webhooks/{webhookId}/runs/{runId}: the run with the body that came with its call.
func GetWebhookRun(env *handler.Env) lambda.Handler {
	db := env.DB()
	return handler.REST(func(ctx context.Context, r *handler.Request) (handler.Reply, error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return handler.Reply{}, err
		}
		w, err := webhook.Get(ctx, db.In(caller.TenantID), r.Params["webhookId"])
		if err != nil {
			return handler.Reply{}, err
		}
		run, err := turn.GetRunWithPayload(ctx, db.In(caller.TenantID), w.ID, r.Params["runId"])
		return handler.Reply{Body: run}, err
	})
}
