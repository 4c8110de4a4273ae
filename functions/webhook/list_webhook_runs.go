package webhook

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/turn"
	"github.com/agentplatform/agentplatform/pkg/webhook"
)

// ListWebhookRuns answers GET /api/webhooks/{webhookId}/runs.
func ListWebhookRuns(env *handler.Env) lambda.Handler {
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
		w, err := webhook.Get(ctx, db.In(caller.TenantID), r.Params["webhookId"])
		if err != nil {
			return handler.Reply{}, err
		}
		list, err := page.List(key, asked, turn.Run.Cursor, func(after *turn.RunCursor, limit int) ([]turn.Run, error) {
			return turn.Runs(ctx, db.In(caller.TenantID), w.ID, after, limit)
		}, caller.TenantID, "runs", w.ID)
		return handler.Reply{Body: handler.List[turn.Run](list)}, err
	})
}
