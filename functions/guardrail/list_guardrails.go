package guardrail

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/guardrail"
	"github.com/agentplatform/agentplatform/pkg/guardrail/store"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// ListGuardrails answers Query.listGuardrails.
func ListGuardrails(env *handler.Env) lambda.Handler {
	db, key := env.DB(), env.PageKey()
	return handler.Resolver(func(ctx context.Context, a page.Request) (page.Page[guardrail.Guardrail], error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return page.Page[guardrail.Guardrail]{}, err
		}
		return page.List(key, a, store.CursorOf, func(after *store.Cursor, limit int) ([]guardrail.Guardrail, error) {
			return store.List(ctx, db.In(caller.TenantID), after, limit)
		}, caller.TenantID, "listGuardrails")
	})
}
