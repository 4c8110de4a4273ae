package routine

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/routine"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// DeleteRoutine answers Mutation.deleteRoutine. The sweep takes the state machines away when no run needs them.
func DeleteRoutine(env *handler.Env) lambda.Handler {
	db := env.DB()
	type args struct {
		ID string `json:"id"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (r routine.Routine, err error) {
		caller, err := tenant.OwnerOrAdmin(ctx)
		if err != nil {
			return r, err
		}
		err = db.InTenant(ctx, caller.TenantID, func(tx pgx.Tx) error {
			r, err = routine.Delete(ctx, tx, a.ID)
			return err
		})
		return r, err
	})
}
