package schedule

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/schedule"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// UpdateSchedule answers Mutation.updateSchedule.
func UpdateSchedule(env *handler.Env) lambda.Handler {
	db := env.DB()
	keeper := &schedule.Keeper{DB: db, Clock: env.Clock()}
	type args struct {
		ID    string          `json:"id"`
		Input schedule.Fields `json:"input"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (s schedule.Schedule, err error) {
		caller, err := tenant.OwnerOrAdmin(ctx)
		if err != nil {
			return s, err
		}
		err = db.InTenant(ctx, caller.TenantID, func(tx pgx.Tx) (err error) {
			s, err = schedule.Update(ctx, tx, a.ID, a.Input)
			return err
		})
		if err == nil && !s.Settled {
			s.Settled = settled(ctx, s.ID, keeper.Settle(ctx, caller.TenantID, s.ID))
		}
		return s, err
	})
}
