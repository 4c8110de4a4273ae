package budget

import (
	"context"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/budget"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// ListBudgets answers Query.listBudgets.
func ListBudgets(env *handler.Env) lambda.Handler {
	db, key := env.DB(), env.PageKey()
	return handler.Resolver(func(ctx context.Context, r page.Request) (page.Page[budget.Budget], error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return page.Page[budget.Budget]{}, err
		}
		return page.List(key, r, budget.Budget.Cursor, func(after *budget.Cursor, limit int) ([]budget.Budget, error) {
			return budget.List(ctx, db.In(caller.TenantID), time.Now(), after, limit)
		}, caller.TenantID, "listBudgets")
	})
}
