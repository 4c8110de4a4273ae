package routine

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/routine"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// GetRoutineRun answers Query.getRoutineRun.
func GetRoutineRun(env *handler.Env) lambda.Handler {
	db, runs := env.DB(), env.RunReader()
	type args struct {
		ID string `json:"id"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (routine.Run, error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return routine.Run{}, err
		}
		r, err := routine.GetRun(ctx, db.In(caller.TenantID), a.ID)
		if err != nil {
			return r, err
		}
		return r.Live(ctx, runs), nil
	})
}
