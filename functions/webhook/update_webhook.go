package webhook

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/webhook"
)

// UpdateWebhook answers PATCH /api/webhooks/{webhookId}: a JSON merge patch (RFC 7396). A member that is null goes back to its default. With
// If-Match, it changes the version that the caller has seen or nothing.
func UpdateWebhook(env *handler.Env) lambda.Handler {
	db := env.DB()
	secrets := webhook.NewSecrets(db, env.WebhookSecrets())
	return handler.REST(func(ctx context.Context, r *handler.Request) (handler.Reply, error) {
		caller, err := tenant.OwnerOrAdmin(ctx)
		if err != nil {
			return handler.Reply{}, err
		}
		patch, err := r.JSON("application/merge-patch+json")
		if err != nil {
			return handler.Reply{}, err
		}
		var said webhook.Given
		if err := handler.Decode(patch, &said); err != nil {
			return handler.Reply{}, err
		}
		var w webhook.Webhook
		err = db.InTenant(ctx, caller.TenantID, func(tx pgx.Tx) (err error) {
			w, err = webhook.Update(ctx, tx, r.Params["webhookId"], func(now webhook.Webhook) (changed webhook.Settings, err error) {
				if err := r.CheckMatch(tag(now)); err != nil {
					return changed, err
				}
				merged, err := now.Merged(patch)
				if err != nil {
					return changed, err
				}
				err = handler.Decode(merged, &changed)
				return changed, err
			})
			if err != nil {
				return err
			}
			return secrets.Set(ctx, tx, &w, said.SigningSecret)
		})
		return reply(w, err)
	})
}
