package guardrail

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/guardrail"
	"github.com/agentplatform/agentplatform/pkg/guardrail/store"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// GetGuardrail answers Query.getGuardrail.
func GetGuardrail(env *handler.Env) lambda.Handler {
	db := env.DB()
	type args struct {
		ID string `json:"id"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (guardrail.Guardrail, error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return guardrail.Guardrail{}, err
		}
		return store.Get(ctx, db.In(caller.TenantID), a.ID)
	})
}
