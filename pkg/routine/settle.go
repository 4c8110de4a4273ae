package routine

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/callback"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/workflow"
)

// Job is what settle-routine-run is called with: a run that was started, stopped or has ended; or nothing, which is the sweep. An event of the engine has
// the run's name in its detail, which is the run's id.
type Job struct {
	TenantID string `json:"tenantId"`
	RunID    string `json:"runId"`
	Detail   struct {
		Name string `json:"name"`
	} `json:"detail"`
}

// Settler writes how runs ended.
type Settler struct {
	Engine
	Answer func(ctx context.Context, t callback.Task) error // invokes answer-callbacks
}

const (
	firstLook = time.Minute    // after a run was started; normally the engine tells its end
	lastLook  = time.Hour      // at most between two looks at a run that goes on
	patience  = 24 * time.Hour // that it is tried to start a run; whoever wanted it then does not want it so much later
	lost      = time.Hour      // that a run may be unknown to the engine, which may show it late
)

// Why a run ends, besides what its definition says.
const (
	NotStarted        = "NotStarted"        // the engine was out of reach for a day
	DefinitionRefused = "DefinitionRefused" // the engine would not have its version
	RunLost           = "RunLost"           // the engine knows nothing of it
	ParentEnded       = "ParentEnded"       // the run that waited for it is over
	Stopped           = "Stopped"           // somebody stopped it
)

// What a task fails with whose run did not succeed, where that has no error of its own.
const (
	RunFailed   = "RoutineFailed"
	RunTimedOut = "RoutineTimedOut"
	RunStopped  = "RoutineStopped"
)

// Run does a job.
func (s *Settler) Run(ctx context.Context, j Job) error {
	switch {
	case j.RunID != "" && j.TenantID != "":
		return s.Settle(ctx, j.TenantID, j.RunID)
	case j.Detail.Name == "":
		return s.sweep(ctx)
	case !ident.Valid(j.Detail.Name): // no run of a routine
		return nil
	}
	tenants, err := postgres.All(ctx, s.DB.Lookup(), pgx.RowTo[string], `select tenant_id::text from lookup_routine_run($1)`, j.Detail.Name)
	if err != nil || len(tenants) == 0 {
		return err
	}
	return s.Settle(ctx, tenants[0], j.Detail.Name)
}

// Settle launches a run that nobody has launched, and writes how one ended that is over. It may be called any number of times, by anybody: what happened
// is written and told once.
func (s *Settler) Settle(ctx context.Context, tenantID, runID string) error {
	r, err := s.Launch(ctx, tenantID, runID)
	if refused := (*Refusal)(nil); errors.As(err, &refused) {
		return s.end(ctx, tenantID, r.ID, Starting, workflow.Run{Status: workflow.Failed, Error: DefinitionRefused, Cause: refused.Reason})
	}
	if err != nil && r.Status == Starting && time.Since(r.CreatedAt.Time) > patience {
		slog.ErrorContext(ctx, "a routine's run could not be started", "tenant_id", tenantID, "routine_run_id", r.ID, "error", err)
		return s.end(ctx, tenantID, r.ID, Starting, workflow.Run{Status: workflow.Failed, Error: NotStarted, Cause: "the workflow engine could not start the run for a day"})
	}
	if err != nil || r.Status.Over() {
		return err
	}
	now, err := s.Runs.Describe(ctx, *r.ARN)
	switch {
	case errors.Is(err, workflow.ErrNoRun) && time.Since(r.StartedAt.Time) > lost:
		return s.end(ctx, tenantID, r.ID, Running, workflow.Run{Status: workflow.Failed, Error: RunLost, Cause: "the workflow engine does not know the run"})
	case err != nil:
		return err
	case now.Status == workflow.Running:
		return s.goesOn(ctx, tenantID, r)
	}
	s.signal("run ended")
	return s.end(ctx, tenantID, r.ID, Running, now)
}

// goesOn stops a run that nobody waits for any more, and says when the sweep looks at it again.
func (s *Settler) goesOn(ctx context.Context, tenantID string, r Run) error {
	if r.ParentRunID != nil && r.CallbackID != nil {
		parent, err := GetRun(ctx, s.DB.In(tenantID), *r.ParentRunID)
		if err != nil && !fault.IsMissing(err) {
			return err
		}
		if err != nil || parent.Status.Over() { // one that is not there any more has been over for long
			if err := s.Runs.Stop(ctx, *r.ARN, ParentEnded, "the run that waited for it is over"); err != nil {
				return err
			}
		}
	}
	return s.later(ctx, tenantID, r)
}

// later puts off the sweep's next look, by as long as the run has gone on.
func (s *Settler) later(ctx context.Context, tenantID string, r Run) error {
	var b pgx.Batch
	b.Queue(`update routine_runs set look_after = clock_timestamp() + $2 where id = $1 and finished_at is null`, r.ID, min(max(time.Since(r.CreatedAt.Time), firstLook), lastLook))
	return s.DB.OnceRelaxed(ctx, tenantID, &b)
}

// statuses are how a run ends, in our words.
var statuses = map[workflow.Status]RunStatus{workflow.Succeeded: Succeeded, workflow.Failed: Failed, workflow.TimedOut: TimedOut, workflow.Aborted: Aborted}

// waitedFor is of the runs that a run waits for.
const waitedFor = `parent_run_id = $1 and callback_id is not null and finished_at is null`

// end writes how a run ended that was from until then, tells whoever waits, and stops the runs that it waited for. One that is anything else stays so.
func (s *Settler) end(ctx context.Context, tenantID, runID string, from RunStatus, ended workflow.Run) error {
	if err := s.dismiss(ctx, tenantID, runID); err != nil {
		return err
	}
	var r Run
	var first bool
	err := s.DB.InTenant(ctx, tenantID, func(tx pgx.Tx) (err error) {
		if first, err = finish(ctx, tx, runID, from, ended); err != nil || !first {
			return err
		}
		if ended.Status != workflow.Succeeded { // if nobody else ends them, the sweep does
			if _, err = tx.Exec(ctx, `update routine_runs set look_after = clock_timestamp() where `+waitedFor, runID); err != nil {
				return err
			}
		}
		if r, err = GetRun(ctx, tx, runID); err != nil || r.CallbackID == nil {
			return err
		}
		return r.answer(ctx, tx)
	})
	if err != nil || !first {
		return err
	}
	s.signal("run settled")
	if r.CallbackID != nil {
		if err := s.Answer(ctx, callback.Task{TenantID: tenantID, CallbackID: *r.CallbackID}); err != nil { // it is due: the sweep finds it
			slog.WarnContext(ctx, "invoking answer-callbacks failed", "routine_run_id", r.ID, "error", err)
		}
	}
	if r.Status == Succeeded {
		return nil
	}
	children, err := postgres.All(ctx, s.DB.In(tenantID), pgx.RowTo[string],
		`select id::text from routine_runs where `+waitedFor, runID)
	for _, child := range children {
		err = errors.Join(err, s.Settle(ctx, tenantID, child), s.Settle(ctx, tenantID, child)) // the first stops it, the second writes that
	}
	return err
}

// Result is what a task that waited for a run is told of one that succeeded.
type Result struct {
	RunID  string          `json:"runId"`
	Status RunStatus       `json:"status"`
	Output json.RawMessage `json:"output,omitempty"` // not there while it goes on
}

// answer tells the task that waits for a run how it ended. An error of the run is the task's.
func (r Run) answer(ctx context.Context, tx pgx.Tx) error {
	if r.Status == Succeeded {
		told, err := json.Marshal(Result{r.ID, r.Status, json.RawMessage(*r.Output)})
		if err != nil {
			return err
		}
		return callback.Answer(ctx, tx, *r.CallbackID, told)
	}
	code := map[RunStatus]string{Failed: *r.Error, TimedOut: RunTimedOut, Aborted: RunStopped}[r.Status]
	if code == "" {
		code = RunFailed
	}
	return callback.Fail(ctx, tx, *r.CallbackID, code, *r.Cause)
}

// finish writes how a run ended; first says that it was from until then.
func finish(ctx context.Context, tx pgx.Tx, runID string, from RunStatus, ended workflow.Run) (first bool, err error) {
	var r Run
	r.become(ended)
	tag, err := tx.Exec(ctx, `update routine_runs set status = $2, output = $3, error = $4, cause = $5, finished_at = greatest($6, started_at), look_after = null where id = $1 and status = $7`,
		runID, r.Status, r.Output, r.Error, r.Cause, r.FinishedAt, from)
	return tag.RowsAffected() > 0, err
}
