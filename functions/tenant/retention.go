package tenant

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/retention"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// Retention answers Query.retention.
func Retention(env *handler.Env) lambda.Handler {
	db := env.DB()
	return handler.Resolver(func(ctx context.Context, _ struct{}) (retention.Policy, error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return retention.Policy{}, err
		}
		return retention.Get(ctx, db.In(caller.TenantID))
	})
}
