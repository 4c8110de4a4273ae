package schedule

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/workflow"
)

const (
	lookEvery = time.Hour // after an execution has begun, and again: whether the engine still has it
	looksMost = 100       // in one check
)

// abandoned closes executions whose run of the machine is over although nobody has recorded a result: somebody stopped the run, or its last state failed
// for longer than it is tried. Those that go on are looked at again in an hour.
func (k *Keeper) abandoned(ctx context.Context) error {
	type long struct{ TenantID, ID, ScheduleID, ARN string }
	all, err := postgres.All(ctx, k.DB.Lookup(), pgx.RowToStructByPos[long],
		`select tenant_id::text, execution_id::text, schedule_id::text, arn from lookup_long_executions($1)`, looksMost)
	if err != nil {
		return err
	}
	var failed []error
	for _, e := range all {
		run, err := k.Runs.Describe(ctx, e.ARN)
		switch {
		case errors.Is(err, workflow.ErrThrottled):
			return errors.Join(append(failed, err)...) // the next check goes on
		case err != nil && !errors.Is(err, workflow.ErrNoRun):
			failed = append(failed, fmt.Errorf("execution %s: %w", e.ID, err))
		case err == nil && run.Status == workflow.Running:
		default:
			s := State{RunARN: e.ARN, Input: Data{Execution: Execution{TenantID: e.TenantID, ScheduleID: e.ScheduleID, ExecutionID: e.ID}}}
			s.Input.Failure = &Failure{Error: run.Error, Cause: run.Cause}
			r, _, err := Close(ctx, k.DB, s) // whoever finds undelivered notices delivers them
			slog.WarnContext(ctx, "the workflow of an execution had ended without a result", "tenant_id", e.TenantID, "execution_id", e.ID,
				"run_status", string(run.Status), "status", string(r.Status), "error", err)
			failed = append(failed, err)
		}
		failed = append(failed, k.lookLater(ctx, e.TenantID, e.ID))
	}
	return errors.Join(failed...)
}

// lookLater puts the next look off, if there is one to come: what has its result needs none.
func (k *Keeper) lookLater(ctx context.Context, tenantID, id string) error {
	var b pgx.Batch
	b.Queue(`update executions set look_after = case when status = 'running' then clock_timestamp() + $2 end where id = $1 and look_after is not null`, id, lookEvery)
	return k.DB.Once(ctx, tenantID, &b)
}
