// Package schedule holds schedules, and their executions: runs of the workflow that lets an agent work, without a person, in a thread of its own, once or
// until a condition stops it, or that starts a routine.
//
// The workflow engine asks for these, one after the other: Open the thread, register for the end of its turn (package callback), what comes Next if the
// schedule loops, Close the thread. What holds:
//
//   - An occurrence of a schedule is one row of executions, and the run that claimed it works on it: any other one finds that out when it opens, and
//     does nothing. The row's lock decides.
//   - The engine may ask twice, also while it is still being answered, and too late: thread, messages and turns are there once, and the second answer is
//     the first.
//   - The result comes from the turns' records, not from what the engine believes: a turn that succeeded before the engine lost sight of it makes
//     a successful execution, unless more turns were to come.
//   - When the result is recorded, the turns are over. One that still ran has lost its lease and writes nothing more.
//   - Whoever dies in between leaves nothing half done; what is committed is enough to go on.
package schedule

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/text"
)

// AutoThread is the workflow, schema/workflow/auto_thread.asl.json.
const AutoThread = "auto-thread"

// Status is how far an execution is.
type Status string

const (
	Running   Status = "running"
	Succeeded Status = "succeeded"
	Failed    Status = "failed"
	Skipped   Status = "skipped" // it was not to be run; the reason is its error
)

// StopReason is why a loop made no further turn.
type StopReason string

const (
	GoalReached   StopReason = "goalReached"
	AtMaximum     StopReason = "maxIterations"
	BudgetSpent   StopReason = "budget"    // the loop's own, or one that the next turn would have needed
	StoppedFailed StopReason = "failed"    // a turn, or what comes between turns
	TakenOver     StopReason = "takenOver" // a person has written in the thread, or closed it
)

// State is what the engine asks with: which run of the workflow it is, and the data that goes through its states.
type State struct {
	RunARN    string    `json:"executionArn"`
	StartedAt time.Time `json:"startedAt"` // of the run; zero: now
	Input     Data      `json:"input"`
}

// Data goes through the states: what the run was started with, and what states have added.
type Data struct {
	Execution
	Step    *Step    `json:"step"`
	Failure *Failure `json:"failure"` // that a state has caught; nil: none
}

// Step is what comes next.
type Step struct {
	Action   Action  `json:"action"`
	Loops    bool    `json:"loops"`    // after the turn, Next is asked
	ThreadID *string `json:"threadId"` // public; nil: none was opened
	TurnID   *string `json:"turnId"`   // nil: none was started
}

// Action is what the machine is to do.
type Action string

const (
	RunTurn     Action = "turn"  // wait for the turn
	CloseThread Action = "close" // there is no further turn
	Done        Action = "done"  // nothing: a routine's run has been started
	Skip        Action = "skip"  // nothing: the occurrence is another run's, or was not to be run
)

// execution is a locked row of executions.
type execution struct {
	id         string
	arn        *string
	turnID     *string
	routineRun *string
	loop       *Loop
	stop       *StopReason
	status     Status
	errorType  *string
	reason     *string
}

// errElsewhere says that another run of the workflow has the execution.
var errElsewhere = errors.New("schedule: the execution is another run's")

// take locks the execution of that run until tx ends. What is of an occurrence is made when it is not there yet: that claims the occurrence. It is
// errElsewhere when another run was faster, and NotFound when there is no such execution that a person asked for.
func take(ctx context.Context, tx pgx.Tx, s State) (e execution, err error) {
	if err := text.Check("executionArn", s.RunARN, 1, 512); err != nil {
		return e, err
	}
	i := s.Input
	if !ident.Valid(i.ScheduleID) {
		return e, fault.Missing("schedule")
	}
	if i.ExecutionID != "" {
		return takeAsked(ctx, tx, s)
	}
	at, err := time.Parse(time.RFC3339, i.Occurrence)
	if err != nil {
		return e, fault.Invalid("occurrence must be a time as in RFC 3339")
	}
	occurrence := ident.Time{Time: at.UTC()}
	tag, err := tx.Exec(ctx, `insert into executions (tenant_id, id, arn, schedule_id, occurrence, look_after) values ($1, $2, $3, $4, $5, clock_timestamp() + $6)
		on conflict (tenant_id, schedule_id, occurrence) where occurrence is not null do nothing`, i.TenantID, ident.New(), s.RunARN, i.ScheduleID, occurrence, lookEvery)
	if postgres.IsForeignKey(err, "executions_tenant_id_fkey") {
		return e, fault.Missing("tenant")
	}
	if err == nil && tag.RowsAffected() > 0 {
		_, err = tx.Exec(ctx, `update schedules set last_occurrence = greatest(last_occurrence, $2) where id = $1`, i.ScheduleID, occurrence)
	}
	if err != nil {
		return e, err
	}
	if e, err = lock(ctx, tx, `schedule_id = $1 and occurrence = $2`, i.ScheduleID, occurrence); err != nil {
		return e, err
	}
	if e.arn == nil || *e.arn != s.RunARN {
		return e, errElsewhere
	}
	return e, nil
}

// takeAsked is take of an execution that a person asked for.
func takeAsked(ctx context.Context, tx pgx.Tx, s State) (execution, error) {
	if !ident.Valid(s.Input.ExecutionID) {
		return execution{}, fault.Missing("execution")
	}
	e, err := lock(ctx, tx, `schedule_id = $1 and id = $2`, s.Input.ScheduleID, s.Input.ExecutionID)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return e, fault.Missing("execution")
	case err != nil:
		return e, err
	case e.arn == nil:
		_, err = tx.Exec(ctx, `update executions set arn = $2, look_after = clock_timestamp() + $3 where id = $1`, e.id, s.RunARN, lookEvery)
		return e, err
	case *e.arn != s.RunARN:
		return e, errElsewhere
	}
	return e, nil
}

func lock(ctx context.Context, tx pgx.Tx, which string, args ...any) (e execution, err error) {
	err = tx.QueryRow(ctx, `select id, arn, turn_id, routine_run_id, loop, stop_reason, status, error_type, error
		from executions where `+which+` for no key update`, args...).
		Scan(&e.id, &e.arn, &e.turnID, &e.routineRun, &e.loop, &e.stop, &e.status, &e.errorType, &e.reason)
	return e, err
}

// inTenant is db.InTenant for a tenant id that came with an input.
func inTenant(ctx context.Context, db *postgres.DB, tenantID string, run func(tx pgx.Tx) error) error {
	if !ident.Valid(tenantID) {
		return fault.Invalid("tenantId is not an id")
	}
	return db.InTenant(ctx, tenantID, run)
}
