package routine

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/routine"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// UpdateRoutine answers Mutation.updateRoutine.
func UpdateRoutine(env *handler.Env) lambda.Handler {
	db := env.DB()
	engine := &routine.Engine{DB: db, Machines: env.Machines(), Function: env.FunctionName(), Signal: env.Signal()}
	type args struct {
		ID    string         `json:"id"`
		Input routine.Fields `json:"input"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (r routine.Routine, err error) {
		caller, err := tenant.OwnerOrAdmin(ctx)
		if err != nil {
			return r, err
		}
		err = db.InTenant(ctx, caller.TenantID, func(tx pgx.Tx) error {
			r, err = routine.Update(ctx, tx, caller.TenantID, caller.UserID, a.ID, a.Input)
			return err
		})
		if err != nil {
			return r, err
		}
		return r, prepare(ctx, engine, caller.TenantID, r)
	})
}
