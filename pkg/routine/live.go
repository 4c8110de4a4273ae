package routine

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/callback"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/text"
	"github.com/agentplatform/agentplatform/pkg/turn"
	"github.com/agentplatform/agentplatform/pkg/workflow"
)

// Live is r as the engine has it, where that is ahead of what is written. If the engine cannot be asked, it is as it was written.
func (r Run) Live(ctx context.Context, runs workflow.RunReader) Run {
	if r.Status.Over() || r.ARN == nil {
		return r
	}
	now, err := runs.Describe(ctx, *r.ARN)
	if err != nil {
		slog.WarnContext(ctx, "a routine's run could not be looked at", "routine_run_id", r.ID, "error", err)
		return r
	}
	if now.Status != workflow.Running {
		r.become(now)
	}
	return r
}

// become makes r one that ended like that.
func (r *Run) become(ended workflow.Run) {
	r.Status = statuses[ended.Status]
	if r.Status == Succeeded {
		r.Output = new(string(ended.Output))
	} else {
		code, cause := callback.Reason(ended.Error, Spoken(ended.Error, ended.Cause))
		r.Error, r.Cause = &code, &cause
	}
	at := ident.Now()
	if !ended.Ended.IsZero() {
		at = ident.Time{Time: ended.Ended.UTC().Truncate(time.Microsecond)}
	}
	r.FinishedAt = &at
}

// maxReason is how long a reason may be, in bytes.
const maxReason = 1000

// Stop ends a run, for a reason that people read. One that the engine was not given yet ends without the engine; who is about to give it has it stopped
// there (Launch). What it waits for ends, too: its turns, and the runs that it started and waits for. One that somebody
// has stopped stays as it is; one that is over otherwise is a ValidationError.
func (s *Settler) Stop(ctx context.Context, tenantID, runID string, reason *string) (Run, error) {
	if err := text.CheckOptional("reason", reason, maxReason); err != nil {
		return Run{}, err
	}
	cause := "a person stopped the run"
	if reason != nil && *reason != "" {
		cause = *reason
	}
	r, err := GetRun(ctx, s.DB.In(tenantID), runID)
	if err == nil && r.Status == Starting {
		if err = s.end(ctx, tenantID, runID, Starting, workflow.Run{Status: workflow.Aborted, Error: Stopped, Cause: cause}); err == nil {
			r, err = GetRun(ctx, s.DB.In(tenantID), runID) // running, if somebody has launched it meanwhile
		}
	}
	if err != nil {
		return r, err
	}
	if r.Status == Running {
		if err := s.Runs.Stop(ctx, *r.ARN, Stopped, cause); err != nil {
			return r, err
		}
		s.signal("run stopped")
	}
	if !r.Status.Over() {
		if err := s.Settle(ctx, tenantID, runID); err != nil {
			return r, err
		}
		if r, err = GetRun(ctx, s.DB.In(tenantID), runID); err != nil {
			return r, err
		}
		r = r.Live(ctx, s.Runs)
	}
	if r.Status.Over() && r.Status != Aborted {
		return r, fault.Invalid("the run is over: %s", r.Status)
	}
	return r, nil
}

// dismiss ends those turns of a run that is over that wait for a person, whom nobody need ask any more; the others end with the run's own end, before
// which this is done, so that whoever dies in between does it again. Nobody is waited for here: subscribers, and what stands behind such a turn, are
// told and dispatched by the reaper.
func (s *Settler) dismiss(ctx context.Context, tenantID, runID string) error {
	waiting, err := postgres.All(ctx, s.DB.In(tenantID), pgx.RowTo[string],
		`select t.id::text from turns_of_run($1, $2) o (id) join thread_turns t on t.id = o.id where t.status = 'waiting'`, tenantID, runID)
	for _, id := range waiting {
		ended := s.DB.InTenant(ctx, tenantID, func(tx pgx.Tx) error {
			_, err := turn.Cancel(ctx, tx, tenantID, id)
			return err
		})
		if ended != nil && fault.From(ended).Type != fault.ValidationError { // else it was over by then
			err = errors.Join(err, ended)
		}
	}
	return err
}
