package routine

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/clienttoken"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/routine"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// CreateRoutine answers Mutation.createRoutine.
func CreateRoutine(env *handler.Env) lambda.Handler {
	db := env.DB()
	engine := &routine.Engine{DB: db, Machines: env.Machines(), Function: env.FunctionName(), Signal: env.Signal()}
	type args struct {
		Input struct {
			routine.Fields
			ClientToken *string `json:"clientToken"`
		} `json:"input"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (r routine.Routine, err error) {
		caller, err := tenant.OwnerOrAdmin(ctx)
		if err != nil {
			return r, err
		}
		err = db.InTenant(ctx, caller.TenantID, func(tx pgx.Tx) error {
			r, _, err = clienttoken.Once(ctx, tx, caller, "createRoutine", a.Input.ClientToken, a.Input.Fields, func() (routine.Routine, error) {
				return routine.Create(ctx, tx, caller.TenantID, caller.UserID, a.Input.Fields)
			})
			return err
		})
		if err != nil {
			return r, err
		}
		return r, prepare(ctx, engine, caller.TenantID, r)
	})
}
