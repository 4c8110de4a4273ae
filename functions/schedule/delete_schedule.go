package schedule

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/schedule"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// DeleteSchedule answers Mutation.deleteSchedule.
func DeleteSchedule(env *handler.Env) lambda.Handler {
	db := env.DB()
	keeper := &schedule.Keeper{DB: db, Clock: env.Clock()}
	type args struct {
		ID string `json:"id"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (s schedule.Schedule, err error) {
		caller, err := tenant.OwnerOrAdmin(ctx)
		if err != nil {
			return s, err
		}
		err = db.InTenant(ctx, caller.TenantID, func(tx pgx.Tx) (err error) {
			s, err = schedule.Delete(ctx, tx, a.ID)
			return err
		})
		if err == nil {
			s.Settled = settled(ctx, s.ID, keeper.Settle(ctx, caller.TenantID, s.ID))
		}
		return s, err
	})
}
