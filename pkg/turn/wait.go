package turn

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
)

const (
	waitEvery = 250 * time.Millisecond // how soon Wait sees the end
	waitGrace = 10 * time.Second       // of the caller's time that Wait leaves it
)

// ErrNotOver says that a turn goes on although whoever waits for it has no more time.
var ErrNotOver = errors.New("turn: not over")

// Wait gives the turn when it is over, whoever runs it; it runs nothing itself. Ten seconds before the deadline of ctx it gives up with
// ErrNotOver. A database that does not answer meanwhile only makes it wait.
func Wait(ctx context.Context, q postgres.Querier, id string) (Turn, error) {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, deadline.Add(-waitGrace), ErrNotOver)
		defer cancel()
	}
	tick := time.NewTicker(waitEvery)
	defer tick.Stop()
	for {
		t, err := Get(ctx, q, id)
		switch {
		case err == nil && t.Over(), fault.IsMissing(err):
			return t, err
		case err != nil && ctx.Err() == nil:
			slog.WarnContext(ctx, "waiting for a turn", "turn_id", id, "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return t, context.Cause(ctx)
		}
	}
}

// Over reports whether the turn came to an end, whatever that is.
func (t Turn) Over() bool { return t.Status != Queued && t.Status != Running && t.Status != Waiting }

// Reason is why a turn that is over did not succeed; "" for one that did.
func (t Turn) Reason() string {
	switch {
	case t.Status == Interrupted:
		return interruptedBy
	case t.Status == Cancelled:
		return cancelledBy
	case t.Status == Failed && t.Error != nil:
		return *t.Error
	}
	return ""
}

// GiveUp ends a turn that is not over as failed, for that reason, and reports whether there was one. An attempt that runs it has lost its lease
// then, and can write nothing. The caller holds the thread's lock.
func GiveUp(ctx context.Context, tx pgx.Tx, id, reason string) (bool, error) {
	tag, err := tx.Exec(ctx, `update thread_turns set status = 'failed', error = $2, lease_until = null, finished_at = $3
		where id = $1 and status in ('queued', 'running', 'waiting')`, id, reason, ident.Now())
	return tag.RowsAffected() > 0, err
}
