package schedule

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/routine"
	"github.com/agentplatform/agentplatform/pkg/schedule"
)

// OpenAutoThread answers the state OpenThread: it claims the occurrence and opens the execution's thread, with its prompt and the queued turn, or has the
// schedule's routine started.
func OpenAutoThread(env *handler.Env) lambda.Handler {
	settle := env.Invoke("settle-routine-run")
	opener := &schedule.Opener{DB: env.DB(), Signal: env.Signal(),
		Routine: func(ctx context.Context, tx pgx.Tx, r schedule.RoutineRun) error {
			start := routine.NewRun{RoutineID: r.RoutineID, RunID: r.ID, StartedBy: routine.StartedBy{Type: routine.BySchedule, ID: r.ScheduleID}}
			if r.Input != nil {
				start.Input = []byte(*r.Input)
			}
			_, err := routine.Start(ctx, tx, r.TenantID, start)
			return err
		},
		Launch: func(ctx context.Context, tenantID, runID string) error {
			return settle(ctx, routine.Job{TenantID: tenantID, RunID: runID})
		}}
	return handler.State(opener.Open)
}
