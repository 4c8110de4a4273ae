package webhook

import (
	"context"
	"net/http"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/webhook"
)

const cleanupTime = 5 * time.Second

// CreateWebhook answers POST /api/webhooks. Its answer is the only one that has the token.
func CreateWebhook(env *handler.Env) lambda.Handler {
	db := env.DB()
	secrets := webhook.NewSecrets(db, env.WebhookSecrets())
	return handler.REST(func(ctx context.Context, r *handler.Request) (handler.Reply, error) {
		caller, err := tenant.OwnerOrAdmin(ctx)
		if err != nil {
			return handler.Reply{}, err
		}
		body, err := r.JSON()
		if err != nil {
			return handler.Reply{}, err
		}
		var said webhook.Given
		if err := handler.Decode(body, &said); err != nil {
			return handler.Reply{}, err
		}
		var w webhook.Webhook
		err = db.InTenant(ctx, caller.TenantID, func(tx pgx.Tx) (err error) {
			if w, err = webhook.Create(ctx, tx, caller.TenantID, said.Settings); err != nil {
				return err
			}
			return secrets.Set(ctx, tx, &w, said.SigningSecret)
		})
		if err != nil && w.HasSecret { // of a webhook that is none: nobody would look for it
			cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
			defer cancel()
			_ = secrets.Drop(cleanup, caller.TenantID, w.ID)
		}
		created, err := reply(w, err)
		if err == nil {
			created.Status, created.Headers["Location"] = http.StatusCreated, "/api/webhooks/"+w.ID
		}
		return created, err
	})
}
