package budget

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/budget"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// Usage answers Query.usage.
func Usage(env *handler.Env) lambda.Handler {
	db := env.DB()
	return handler.Resolver(func(ctx context.Context, q budget.Question) (budget.Usage, error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return budget.Usage{}, err
		}
		return budget.Ask(ctx, db.In(caller.TenantID), q)
	})
}
