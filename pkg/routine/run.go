package routine

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
)

// RunStatus is how far a run is.
type RunStatus string

const (
	Starting  RunStatus = "starting" // the engine has not been asked yet, or not answered
	Running   RunStatus = "running"
	Succeeded RunStatus = "succeeded"
	Failed    RunStatus = "failed"
	TimedOut  RunStatus = "timed_out" // after the definition's TimeoutSeconds
	Aborted   RunStatus = "aborted"   // somebody stopped it
)

// Over reports whether nothing comes any more.
func (s RunStatus) Over() bool { return s != Starting && s != Running }

// Starter is what kind of thing started a run.
type Starter string

const (
	ByUser     Starter = "user"
	BySchedule Starter = "schedule"
	ByWebhook  Starter = "webhook"
	ByAgent    Starter = "agent" // one of its turns
	ByRoutine  Starter = "routine"
)

// StartedBy is who started a run.
type StartedBy struct {
	Type Starter `json:"type"`
	ID   string  `json:"id"` // of the user, schedule, webhook, turn or run
}

// Run is one run of a routine, as the API shows it.
type Run struct {
	ID          string      `json:"id"`
	RoutineID   string      `json:"routineId"`
	RoutineName string      `json:"routineName"`
	Version     int         `json:"version"`
	Status      RunStatus   `json:"status"`
	Input       *string     `json:"input"`  // JSON; nil in lists
	Output      *string     `json:"output"` // JSON, of one that succeeded; nil in lists
	Error       *string     `json:"error"`  // of one that did not: the code
	Cause       *string     `json:"cause"`  // of one that did not: for people
	ARN         *string     `json:"executionArn"`
	StartedBy   StartedBy   `json:"startedBy"`
	ParentRunID *string     `json:"parentRunId"`
	Depth       int         `json:"depth"` // 1, and one more than its parent's
	CreatedAt   ident.Time  `json:"createdAt"`
	StartedAt   *ident.Time `json:"startedAt"`
	FinishedAt  *ident.Time `json:"finishedAt"`
	CallbackID  *string     `json:"-"` // of the step of the parent that waits for it; nil: none does
}

// NewRun is what a run is started with.
type NewRun struct {
	RoutineID   string          // or else
	Name        string          // the routine's
	RunID       string          // the run's, of whoever may ask twice: a run that has it already is the answer. Empty: a new one
	Input       json.RawMessage // nil: {}
	StartedBy   StartedBy
	ParentRunID *string // the run that it is a part of; nil: none
	CallbackID  *string // of the step of the parent that waits for its end; nil: nobody waits
}

// columns are of routine_runs r and routines n.
const runColumns = `r.id, r.routine_id, n.name, r.version, r.status, r.input, r.output, r.error, r.cause, r.arn, r.started_by, r.starter_id, r.parent_run_id, r.depth,
	r.created_at, r.started_at, r.finished_at, r.callback_id`

func scanRun(row pgx.CollectableRow) (r Run, err error) {
	err = row.Scan(&r.ID, &r.RoutineID, &r.RoutineName, &r.Version, &r.Status, &r.Input, &r.Output, &r.Error, &r.Cause, &r.ARN, &r.StartedBy.Type, &r.StartedBy.ID,
		&r.ParentRunID, &r.Depth, &r.CreatedAt, &r.StartedAt, &r.FinishedAt, &r.CallbackID)
	return r, err
}

// GetRun is one run, as it was written last.
func GetRun(ctx context.Context, q postgres.Querier, id string) (Run, error) {
	if !ident.Valid(id) {
		return Run{}, fault.Missing("routine run")
	}
	return postgres.One(ctx, q, "routine run", scanRun,
		`select `+runColumns+` from routine_runs r join routines n on n.tenant_id = r.tenant_id and n.id = r.routine_id where r.id = $1`, id)
}

// RunFilter narrows a list of runs; nil is all.
type RunFilter struct {
	RoutineID *string    `json:"routineId"`
	Status    *RunStatus `json:"status"`
}

// RunCursor is the sort key of lists of runs.
type RunCursor struct{ ID string }

// Cursor is r's place in the list.
func (r Run) Cursor() RunCursor { return RunCursor{r.ID} }

// Runs are up to limit runs after the cursor, newest first, without their inputs and outputs.
func Runs(ctx context.Context, q postgres.Querier, f RunFilter, after *RunCursor, limit int) ([]Run, error) {
	if f.RoutineID != nil && !ident.Valid(*f.RoutineID) {
		return nil, fault.Missing("routine")
	}
	before := "ffffffff-ffff-ffff-ffff-ffffffffffff"
	if after != nil {
		before = after.ID
	}
	return postgres.All(ctx, q, scanRun, `select `+strings.Replace(runColumns, `r.input, r.output`, `null, null`, 1)+`
		from routine_runs r join routines n on n.tenant_id = r.tenant_id and n.id = r.routine_id
		where ($1::uuid is null or r.routine_id = $1) and ($2::text is null or r.status = $2) and r.id < $3 order by r.id desc limit $4`, f.RoutineID, f.Status, before, limit)
}

// startGrace is how long a run waits for whoever made it to launch it, before the sweep does.
const startGrace = 30 * time.Second
