package webhook

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/webhook"
)

// ListWebhooks answers GET /api/webhooks.
func ListWebhooks(env *handler.Env) lambda.Handler {
	db, key := env.DB(), env.PageKey()
	return handler.REST(func(ctx context.Context, r *handler.Request) (handler.Reply, error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return handler.Reply{}, err
		}
		asked, err := r.Page()
		if err != nil {
			return handler.Reply{}, err
		}
		list, err := page.List(key, asked, webhook.Webhook.Cursor, func(after *webhook.Cursor, limit int) ([]webhook.Webhook, error) {
			return webhook.List(ctx, db.In(caller.TenantID), after, limit)
		}, caller.TenantID, "webhooks")
		return handler.Reply{Body: handler.List[webhook.Webhook](list)}, err
	})
}
