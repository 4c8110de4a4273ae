package routine

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/workflow"
)

// Start writes the run that s describes, of the routine's current version. Whoever commits must then Launch it, or invoke settle-routine-run with its
// Job. A tenant that has MaxRuns going on is RateLimitExceeded; what is deeper than MaxDepth is a ValidationError.
func Start(ctx context.Context, tx pgx.Tx, tenantID string, s NewRun) (Run, error) {
	input, err := s.input()
	if err != nil {
		return Run{}, err
	}
	// One at a time in a tenant, so that runs are counted exactly.
	if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('routine_runs ' || $1, 0))`, tenantID); err != nil {
		return Run{}, err
	}
	if s.RunID == "" {
		s.RunID = ident.New()
	} else if r, err := GetRun(ctx, tx, s.RunID); err == nil || !fault.IsMissing(err) {
		return r, err
	}
	id, version, err := s.routine(ctx, tx)
	if err != nil {
		return Run{}, err
	}
	depth, err := s.depth(ctx, tx)
	if err != nil {
		return Run{}, err
	}
	var open int
	if err := tx.QueryRow(ctx, `select count(*) from routine_runs where finished_at is null`).Scan(&open); err != nil {
		return Run{}, err
	}
	if open >= MaxRuns {
		return Run{}, fault.New(fault.RateLimitExceeded, "%d runs of routines go on, and no more may at a time", open)
	}
	_, err = tx.Exec(ctx, `insert into routine_runs (tenant_id, id, routine_id, version, input, started_by, starter_id, parent_run_id, callback_id, depth, look_after, created_at)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, clock_timestamp() + $11, $12)`,
		tenantID, s.RunID, id, version, input, s.StartedBy.Type, s.StartedBy.ID, s.ParentRunID, s.CallbackID, depth, startGrace, ident.Now())
	if err != nil {
		return Run{}, err
	}
	return GetRun(ctx, tx, s.RunID)
}

// input is what the engine is given: an empty object for none.
func (s NewRun) input() (string, error) {
	if len(s.Input) == 0 {
		return `{}`, nil
	}
	input, err := workflow.Data(s.Input)
	switch {
	case errors.Is(err, workflow.ErrTooLarge):
		return "", fault.Invalid("input is longer than %d bytes", workflow.MaxData)
	case err != nil:
		return "", fault.Invalid("input must be JSON")
	}
	return input, nil
}

// routine is what is to run. Until tx ends nobody supersedes that version, or deletes the routine: the engine keeps the machine of what runs.
func (s NewRun) routine(ctx context.Context, tx pgx.Tx) (id string, version int, err error) {
	if s.RoutineID != "" && !ident.Valid(s.RoutineID) {
		return "", 0, fault.Missing("routine")
	}
	var byID *string
	if s.RoutineID != "" {
		byID = &s.RoutineID
	}
	err = tx.QueryRow(ctx, `select id, current_version from routines where deleted_at is null and (id = $1 or $1 is null and name = $2) for share`, byID, s.Name).Scan(&id, &version)
	if errors.Is(err, pgx.ErrNoRows) {
		err = fault.Missing("routine")
	}
	return id, version, err
}

// depth is how deep the run is among those that start runs.
func (s NewRun) depth(ctx context.Context, tx pgx.Tx) (int, error) {
	if s.ParentRunID == nil {
		return 1, nil
	}
	parent, err := GetRun(ctx, tx, *s.ParentRunID)
	switch {
	case err != nil:
		return 0, err
	case parent.Status.Over():
		return 0, fault.Invalid("the run that starts it is over")
	case parent.Depth >= MaxDepth:
		return 0, fault.Invalid("runs that start runs may be %d deep", MaxDepth)
	}
	return parent.Depth + 1, nil
}
