package integration

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/integration"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// ListIntegrations answers Query.listIntegrations.
func ListIntegrations(env *handler.Env) lambda.Handler {
	db, key, domain := env.DB(), env.PageKey(), env.MailDomain()
	return handler.Resolver(func(ctx context.Context, r page.Request) (page.Page[integration.Integration], error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return page.Page[integration.Integration]{}, err
		}
		found, err := page.List(key, r, integration.Integration.Cursor, func(after *integration.Cursor, limit int) ([]integration.Integration, error) {
			return integration.List(ctx, db.In(caller.TenantID), after, limit)
		}, caller.TenantID, "listIntegrations")
		for n := range found.Items {
			found.Items[n] = shown(found.Items[n], domain)
		}
		return found, err
	})
}
