package webhook

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/webhook"
)

// GetWebhook answers GET /api/webhooks/{webhookId}.
func GetWebhook(env *handler.Env) lambda.Handler {
	db := env.DB()
	return handler.REST(func(ctx context.Context, r *handler.Request) (handler.Reply, error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return handler.Reply{}, err
		}
		w, err := webhook.Get(ctx, db.In(caller.TenantID), r.Params["webhookId"])
		return reply(w, err)
	})
}
