package schedule

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/workflow"
)

// RunNow writes a run of a schedule that a person asks for. When it is committed, StartRun starts it; else the drift check does.
func RunNow(ctx context.Context, tx pgx.Tx, tenantID, scheduleID string) (Run, error) {
	s, err := For(ctx, tx, scheduleID)
	if err != nil {
		return Run{}, err
	}
	r := Run{ID: ident.New(), ScheduleID: &s.ID, Trigger: Manual, Status: Running, StartedAt: ident.Now()}
	_, err = tx.Exec(ctx, `insert into executions (tenant_id, id, workflow, schedule_id, trigger, started_at) values ($1, $2, $3, $4, $5, $6)`,
		tenantID, r.ID, AutoThread, s.ID, r.Trigger, r.StartedAt)
	return r, err
}

// StartRun starts a run that a person asked for. Starting it again changes nothing.
func StartRun(ctx context.Context, runs workflow.Runs, tenantID, scheduleID, runID string) error {
	_, err := start(ctx, runs, runID, Execution{TenantID: tenantID, ScheduleID: scheduleID, ExecutionID: runID})
	return err
}

func start(ctx context.Context, runs workflow.Runs, name string, e Execution) (run string, err error) {
	input, err := json.Marshal(e)
	if err != nil {
		return "", err
	}
	return runs.Start(ctx, AutoThread, name, input)
}
