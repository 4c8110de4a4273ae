package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/notify"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/text"
	"github.com/agentplatform/agentplatform/pkg/thread"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// Why an execution fails, besides the types of package fault.
const (
	TurnFailed        = "TurnFailed"        // a turn is over and did not succeed
	TurnNotOver       = "TurnNotOver"       // a turn took longer than the workflow waits
	GraderUnavailable = "GraderUnavailable" // what rates a loop's goal could not be asked
	timedOut          = "States.Timeout"
	silent            = "States.HeartbeatTimeout"
)

// Failure is an error of a state, as the workflow engine catches it.
type Failure struct {
	Error string `json:"Error"`
	Cause string `json:"Cause"` // of a function: its error's JSON
}

// Reason is what people may read of it: what the platform's own functions said, and no internal error's text.
func (f Failure) reason() (errorType, reason string) {
	if f.Error == timedOut || f.Error == silent {
		return TurnNotOver, "the run took longer than a workflow waits"
	}
	readable := []string{TurnFailed, TurnNotOver, GraderUnavailable, string(fault.Forbidden), string(fault.NotFound), string(fault.ValidationError),
		string(fault.RateLimitExceeded), string(fault.BudgetExceeded)}
	var cause struct {
		Message string `json:"errorMessage"`
	}
	if slices.Contains(readable, f.Error) && json.Unmarshal([]byte(f.Cause), &cause) == nil && cause.Message != "" {
		return f.Error, cause.Message
	}
	return string(fault.InternalError), "internal error"
}

// Result is how an execution ended.
type Result struct {
	Status     Status      `json:"status"`     // succeeded, failed, or skipped: it is another run's
	ThreadID   *string     `json:"threadId"`   // public; nil: none was opened
	TurnID     *string     `json:"turnId"`     // the last; nil: none was started
	StopReason *StopReason `json:"stopReason"` // of a loop
	ErrorType  *string     `json:"errorType"`  // of a failed one
	Error      *string     `json:"error"`      // of a failed one
}

// Close records the result of the execution that s is of and closes its thread, or marks it as failed. Whoever called must then deliver the notices. A
// recorded result stays; asking again changes nothing.
//
// With a failure, a turn that is not over is ended. Without one, it must be over, and a loop must have stopped. A thread that a person has taken up
// meanwhile, or moved to a status that allows no such move, stays as it is.
func Close(ctx context.Context, db *postgres.DB, s State) (r Result, notices []notify.Notice, err error) {
	err = inTenant(ctx, db, s.Input.TenantID, func(tx pgx.Tx) error {
		r, notices = Result{Status: Skipped}, nil
		e, err := take(ctx, tx, s)
		if errors.Is(err, errElsewhere) {
			return nil
		}
		if err != nil {
			return err
		}
		r, notices, err = e.close(ctx, tx, s.Input.TenantID, s.Input.Failure)
		return err
	})
	return r, notices, err
}

func (e execution) close(ctx context.Context, tx pgx.Tx, tenantID string, f *Failure) (r Result, notices []notify.Notice, err error) {
	r = Result{Status: e.status, TurnID: e.turnID, StopReason: e.stop, ErrorType: e.errorType, Error: e.reason}
	var t turn.Turn
	if e.turnID != nil {
		if t, err = turn.Get(ctx, tx, *e.turnID); err != nil {
			return r, nil, err
		}
		r.ThreadID = t.ThreadID
	}
	switch {
	case e.status != Running:
		return r, nil, nil
	case e.turnID == nil && f == nil:
		return r, nil, fault.Invalid("the execution has opened no thread")
	case e.loop != nil && e.stop == nil && f == nil:
		return r, nil, fault.Invalid("the loop has not stopped")
	}
	var th thread.Thread
	ended := true // by itself
	if e.turnID != nil {
		if th, err = thread.Lock(ctx, tx, *t.ThreadID); err != nil { // before the turn, as whoever writes to a thread does
			return r, nil, err
		}
		if f != nil {
			_, reason := f.reason()
			given, err := turn.GiveUp(ctx, tx, t.ID, reason)
			if err != nil {
				return r, nil, err
			}
			ended = !given
		}
		if t, err = turn.Get(ctx, tx, t.ID); err != nil {
			return r, nil, err
		}
		if !t.Over() {
			return r, nil, fault.Invalid("the turn is not over")
		}
	}
	switch {
	case t.Status == turn.Succeeded && (e.loop == nil || e.stop != nil):
		r.Status = Succeeded
	case e.turnID != nil && ended && t.Status != turn.Succeeded:
		r.fail(TurnFailed, t.Reason())
	default:
		r.fail(f.reason())
	}
	if r.Status == Failed && e.loop != nil && e.stop == nil {
		r.StopReason = new(StoppedFailed)
	}
	var b pgx.Batch
	b.Queue(`update executions set status = $2, error_type = $3, error = $4, stop_reason = $5, finished_at = $6, look_after = null where id = $1`,
		e.id, r.Status, r.ErrorType, r.Error, r.StopReason, ident.Now())
	b.Queue(`update execution_iterations set finished_at = $2 where execution_id = $1 and finished_at is null`, e.id, ident.Now())
	if err := tx.SendBatch(ctx, &b).Close(); err != nil || e.turnID == nil {
		return r, nil, err
	}
	notices, err = r.settle(ctx, tx, tenantID, th)
	return r, notices, err
}

func (r *Result) fail(errorType, reason string) {
	r.Status, r.ErrorType, r.Error = Failed, &errorType, &reason
}

// settle moves the locked thread to the status that the result gives it.
func (r Result) settle(ctx context.Context, tx pgx.Tx, tenantID string, th thread.Thread) ([]notify.Notice, error) {
	next := thread.Closed
	if r.Status == Failed {
		next = thread.Failed
	}
	var taken bool // by a person's message, which has a turn of its own
	err := tx.QueryRow(ctx, `select exists (select from thread_turns r join thread_turns later on later.thread_uuid = r.thread_uuid and later.number > r.number
		where r.id = $1)`, r.TurnID).Scan(&taken)
	if err != nil || taken || th.Status.Check(next) != nil {
		return nil, err
	}
	th, changed, err := thread.Update(ctx, tx, th.ID, thread.Fields{Status: text.Patch[thread.Status]{Set: true, Value: &next}})
	if err != nil || !changed {
		return nil, err
	}
	var b pgx.Batch
	notice := notify.Queue(&b, tenantID, th.UUID, thread.Updated(tenantID, th))
	return []notify.Notice{notice}, tx.SendBatch(ctx, &b).Close()
}
