package schedule

import (
	"context"
	"errors"
	"log/slog"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/clienttoken"
	"github.com/agentplatform/agentplatform/pkg/clock"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/schedule"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// CreateSchedule answers Mutation.createSchedule.
func CreateSchedule(env *handler.Env) lambda.Handler {
	db := env.DB()
	keeper := &schedule.Keeper{DB: db, Clock: env.Clock()}
	const operation = "createSchedule"
	type args struct {
		Input struct {
			schedule.Fields
			ClientToken *string `json:"clientToken"`
		} `json:"input"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (s schedule.Schedule, err error) {
		caller, err := tenant.OwnerOrAdmin(ctx)
		if err != nil {
			return s, err
		}
		var repeated bool
		err = db.InTenant(ctx, caller.TenantID, func(tx pgx.Tx) (err error) {
			s, repeated, err = clienttoken.Once(ctx, tx, caller, operation, a.Input.ClientToken, a.Input.Fields, func() (schedule.Schedule, error) {
				return schedule.Create(ctx, tx, caller.TenantID, caller.UserID, a.Input.Fields)
			})
			return err
		})
		if err != nil {
			return s, err
		}
		err = keeper.Settle(ctx, caller.TenantID, s.ID)
		if errors.Is(err, clock.ErrTooMany) && !repeated { // it would never run, so it is not made
			slog.ErrorContext(ctx, "the clock takes no further schedule", "error", err)
			if err := keeper.Undo(ctx, caller.TenantID, caller.UserID, s.ID, operation, a.Input.ClientToken); err != nil {
				return s, err
			}
			return s, fault.New(fault.RateLimitExceeded, "the deployment has as many schedules as its clock may have; its operator can have the quota raised")
		}
		s.Settled = settled(ctx, s.ID, err)
		return s, nil
	})
}

// settled reports whether the clock has been told of a schedule; else the drift check tells it.
func settled(ctx context.Context, id string, err error) bool {
	if err != nil {
		slog.WarnContext(ctx, "the clock could not be told of a schedule; the drift check tells it", "schedule_id", id, "error", err)
	}
	return err == nil
}
