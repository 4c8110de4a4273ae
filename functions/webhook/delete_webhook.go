package webhook

import (
	"context"
	"strings"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/webhook"
)

// DeleteWebhook answers DELETE /api/webhooks/{webhookId}.
func DeleteWebhook(env *handler.Env) lambda.Handler {
	db := env.DB()
	secrets := webhook.NewSecrets(db, env.WebhookSecrets())
	return handler.REST(func(ctx context.Context, r *handler.Request) (handler.Reply, error) {
		caller, err := tenant.OwnerOrAdmin(ctx)
		if err != nil {
			return handler.Reply{}, err
		}
		return handler.Reply{}, db.InTenant(ctx, caller.TenantID, func(tx pgx.Tx) error {
			secret := false
			err := webhook.Delete(ctx, tx, r.Params["webhookId"], func(now webhook.Webhook) error {
				secret = now.HasSecret
				return r.CheckMatch(tag(now))
			})
			if err != nil || !secret {
				return err
			}
			return secrets.Drop(ctx, caller.TenantID, strings.ToLower(r.Params["webhookId"])) // last: what is left after a failure can be deleted again
		})
	})
}
