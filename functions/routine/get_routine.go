package routine

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/routine"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// GetRoutine answers Query.getRoutine.
func GetRoutine(env *handler.Env) lambda.Handler {
	db := env.DB()
	type args struct {
		ID      string `json:"id"`
		Version *int   `json:"version"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (routine.Routine, error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return routine.Routine{}, err
		}
		return routine.Get(ctx, db.In(caller.TenantID), a.ID, a.Version)
	})
}
