package schedule

import (
	"context"
	"log/slog"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/clienttoken"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/schedule"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// RunScheduleNow answers Mutation.runScheduleNow.
func RunScheduleNow(env *handler.Env) lambda.Handler {
	db, runs, signal := env.DB(), env.Runs(), env.Signal()
	type args struct {
		ID          string  `json:"id"`
		ClientToken *string `json:"clientToken"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (r schedule.Run, err error) {
		caller, err := tenant.OwnerOrAdmin(ctx)
		if err != nil {
			return r, err
		}
		err = db.InTenant(ctx, caller.TenantID, func(tx pgx.Tx) (err error) {
			r, _, err = clienttoken.Once(ctx, tx, caller, "runScheduleNow", a.ClientToken, a.ID, func() (schedule.Run, error) {
				return schedule.RunNow(ctx, tx, caller.TenantID, a.ID)
			})
			return err
		})
		if err != nil {
			return r, err
		}
		signal("schedule run written")
		if err := schedule.StartRun(ctx, runs, caller.TenantID, *r.ScheduleID, r.ID); err != nil { // the run is written: the drift check starts it
			slog.WarnContext(ctx, "a run that was asked for is not started yet", "schedule_run_id", r.ID, "error", err)
		}
		return r, nil
	})
}
