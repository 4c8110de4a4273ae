package schedule

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/agent"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/thread"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// Opener begins executions.
type Opener struct {
	DB      *postgres.DB
	Routine func(ctx context.Context, tx pgx.Tx, r RoutineRun) error // writes the run of a routine, once by its id
	Launch  func(ctx context.Context, tenantID, runID string) error  // starts it after the commit; what is lost is found by a sweep
	Signal  func(point string)                                       // tests: called at every point where a crash is tried; nil: none
}

// RoutineRun is the run that an execution starts.
type RoutineRun struct {
	ID         string // that it is to have
	TenantID   string
	RoutineID  string
	ScheduleID string
	Input      *string // JSON text; nil: none
}

// Open begins the execution that s is of: it claims the occurrence, and opens an AUTO thread with the prompt and a queued turn, or writes the run of a
// routine, all in one transaction. An execution that has these keeps them. One that is not to be run is recorded as skipped: the schedule is disabled or
// deleted, or the occurrence had been missed and the schedule skips those.
//
// An agent that takes no turns is Forbidden, its limits are RateLimitExceeded, its budgets BudgetExceeded; nothing is written then, no claim either.
func (o *Opener) Open(ctx context.Context, s State) (step Step, err error) {
	tenantID := s.Input.TenantID
	var routineRun string
	err = inTenant(ctx, o.DB, tenantID, func(tx pgx.Tx) error {
		step, routineRun = Step{Action: Skip}, ""
		e, err := take(ctx, tx, s)
		if errors.Is(err, errElsewhere) {
			return nil
		}
		if err != nil {
			return err
		}
		step, routineRun, err = o.open(ctx, tx, s, e)
		return err
	})
	if err != nil {
		return Step{}, err
	}
	o.signal("execution opened")
	if routineRun != "" {
		if err := o.Launch(ctx, tenantID, routineRun); err != nil {
			slog.WarnContext(ctx, "the routine is started later", "tenant_id", tenantID, "routine_run_id", routineRun, "error", err)
		}
	}
	return step, nil
}

func (o *Opener) open(ctx context.Context, tx pgx.Tx, s State, e execution) (step Step, routineRun string, err error) {
	switch {
	case e.turnID != nil:
		step, err = e.turnStep(ctx, tx)
		return step, "", err
	case e.routineRun != nil:
		return Step{Action: Done}, *e.routineRun, nil
	case e.status == Skipped:
		return Step{Action: Skip}, "", nil
	case e.status != Running: // it was closed while this call was under way
		return Step{}, "", fault.Invalid("the execution is over")
	}
	schedule, err := For(ctx, tx, s.Input.ScheduleID)
	if err != nil && !fault.IsMissing(err) {
		return Step{}, "", err
	}
	late, why := s.standing(schedule, err != nil)
	if why != "" {
		_, err := tx.Exec(ctx, `update executions set status = 'skipped', error = $2, finished_at = $3, look_after = null where id = $1`, e.id, why, ident.Now())
		return Step{Action: Skip}, "", err
	}
	if late {
		if _, err := tx.Exec(ctx, `update executions set trigger = 'late' where id = $1`, e.id); err != nil {
			return Step{}, "", err
		}
	}
	if schedule.RoutineID != nil {
		run := RoutineRun{ID: ident.New(), TenantID: s.Input.TenantID, RoutineID: *schedule.RoutineID, ScheduleID: schedule.ID, Input: schedule.Input}
		if err := o.Routine(ctx, tx, run); err != nil {
			return Step{}, "", err
		}
		_, err := tx.Exec(ctx, `update executions set routine_run_id = $2, status = 'succeeded', finished_at = $3, look_after = null where id = $1`, e.id, run.ID, ident.Now())
		return Step{Action: Done}, run.ID, err
	}
	step, err = e.openThread(ctx, tx, s.Input.TenantID, schedule)
	return step, "", err
}

// standing says whether the occurrence is late, and why it is not to be run at all; "": it is. What a person asked for is run whatever the schedule says,
// as long as it is there. How late it is counts from when the run was started: not from a later attempt of its first state. Of several that are late, as
// when the engine was away and the clock hands over all of them, the last is run.
func (s State) standing(schedule Schedule, missing bool) (late bool, why string) {
	if missing {
		return false, "the schedule has been deleted"
	}
	if s.Input.ExecutionID != "" {
		return false, ""
	}
	if !schedule.Enabled {
		return false, "the schedule is disabled"
	}
	started := s.StartedAt
	if started.IsZero() {
		started = time.Now()
	}
	at, err := time.Parse(time.RFC3339, s.Input.Occurrence)
	late = err == nil && started.Sub(at) > Late
	if late && schedule.Missed == MissedSkip {
		return late, "the occurrence had been missed"
	}
	if late && schedule.due(at, started.Add(-Late)) {
		return late, "a later occurrence had been missed, too"
	}
	return late, ""
}

// openThread opens the thread of an agent's execution.
func (e execution) openThread(ctx context.Context, tx pgx.Tx, tenantID string, s Schedule) (Step, error) {
	a, err := agent.Get(ctx, tx, *s.AgentID)
	if err != nil {
		return Step{}, err
	}
	th := thread.Thread{Channel: thread.Auto, Title: s.Title, Metadata: s.Metadata}
	turnID, err := turn.Open(ctx, tx, tenantID, a, &th, turn.Words{Body: *s.Prompt}, func(b *pgx.Batch, turnID string) {
		b.Queue(`update executions set turn_id = $2, loop = $3 where id = $1`, e.id, turnID, s.Loop)
		if s.Loop != nil {
			queueIteration(b, tenantID, e.id, 1, turnID)
		}
	})
	if err != nil {
		return Step{}, err
	}
	return Step{Action: RunTurn, Loops: s.Loop != nil, ThreadID: &th.ID, TurnID: &turnID}, nil
}

// turnStep is the step of an execution that has a turn.
func (e execution) turnStep(ctx context.Context, tx pgx.Tx) (Step, error) {
	t, err := turn.Get(ctx, tx, *e.turnID)
	if err != nil {
		return Step{}, err
	}
	return Step{Action: RunTurn, Loops: e.loop != nil, ThreadID: t.ThreadID, TurnID: &t.ID}, nil
}

func (o *Opener) signal(point string) {
	if o.Signal != nil {
		o.Signal(point)
	}
}
