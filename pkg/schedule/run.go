package schedule

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
)

// Trigger is what had a schedule run.
type Trigger string

const (
	Scheduled Trigger = "scheduled" // it was due
	LateRun   Trigger = "late"      // it had been due long before: see Missed
	Manual    Trigger = "manual"    // a person
)

// Run is an execution of a schedule, as the API shows it.
type Run struct {
	ID           string      `json:"id"`
	ScheduleID   *string     `json:"scheduleId"`
	Occurrence   *ident.Time `json:"occurrence"` // when it was due; nil: a person asked for it
	Trigger      Trigger     `json:"trigger"`
	Status       Status      `json:"status"`
	ThreadID     *string     `json:"threadId"`     // public; nil: none was opened
	TurnID       *string     `json:"turnId"`       // of a loop the last as yet; nil: none was started
	RoutineRunID *string     `json:"routineRunId"` // nil: none was started
	StopReason   *StopReason `json:"stopReason"`   // why a loop made no further turn; nil: it goes on, or is none
	ErrorType    *string     `json:"errorType"`    // of a failed one
	Error        *string     `json:"error"`        // of a failed one
	StartedAt    ident.Time  `json:"startedAt"`
	FinishedAt   *ident.Time `json:"finishedAt"`
}

const runColumns = `e.id, e.schedule_id, e.occurrence, e.trigger, e.status, (select h.prefix || '-' || h.number from thread_turns t join threads h on h.uuid = t.thread_uuid
	where t.id = e.turn_id), e.turn_id, e.routine_run_id, e.stop_reason, e.error_type, e.error, e.started_at, e.finished_at`

func (r *Run) fields() []any {
	return []any{&r.ID, &r.ScheduleID, &r.Occurrence, &r.Trigger, &r.Status, &r.ThreadID, &r.TurnID, &r.RoutineRunID, &r.StopReason, &r.ErrorType, &r.Error, &r.StartedAt, &r.FinishedAt}
}

func scanRun(row pgx.CollectableRow) (Run, error) {
	var r Run
	err := row.Scan(r.fields()...)
	return r, err
}

// GetRun is one run.
func GetRun(ctx context.Context, q postgres.Querier, id string) (Run, error) {
	if !ident.Valid(id) {
		return Run{}, fault.Missing("schedule run")
	}
	return postgres.One(ctx, q, "schedule run", scanRun, `select `+runColumns+` from executions e where e.id = $1 and e.schedule_id is not null`, id)
}

// RunCursor is the sort key of a schedule's runs.
type RunCursor struct{ ID string }

// Cursor is r's place in the list.
func (r Run) Cursor() RunCursor { return RunCursor{r.ID} }

// Runs are up to limit runs of each schedule after the cursor, newest first, in one query, by the schedule's id.
func Runs(ctx context.Context, q postgres.Querier, schedules []string, after *RunCursor, limit int) (map[string][]Run, error) {
	var id *string
	if after != nil {
		id = &after.ID
	}
	rows, err := q.Query(ctx, `select `+runColumns+` from unnest($1::uuid[]) as s (id) cross join lateral (
		select * from executions x where x.schedule_id = s.id and ($2::uuid is null or x.id < $2) order by x.id desc limit $3) e order by e.schedule_id, e.id desc`, schedules, id, limit)
	if err != nil {
		return nil, err
	}
	all, err := pgx.CollectRows(rows, scanRun)
	runs := make(map[string][]Run, len(schedules))
	for _, r := range all {
		runs[*r.ScheduleID] = append(runs[*r.ScheduleID], r)
	}
	return runs, err
}
