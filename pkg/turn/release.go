package turn

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
)

// stopGrace is how long an attempt may still write after its process was told to stop.
const stopGrace = 5 * time.Second

// handBack gives the turn's lease up, so that it goes on elsewhere at once, behind its last finished step. It does not count as a death: a
// turn may be handed back any number of times.
//
// The turn stays a running one. As a queued one it would come behind, or into conflict with, the turn that waits in its thread.
func (r *Runner) handBack(ctx context.Context, a *attempt) error {
	ctx, cancel := outlive(ctx)
	defer cancel()
	a.phases.end()
	var b pgx.Batch
	b.Queue(`select hold_turn($1, $2)`, a.turnID, a.lease)
	for _, s := range a.left {
		finishStep(&b, a.turnID, s)
	}
	b.Queue(`update thread_turns set lease_id = null, lease_until = clock_timestamp(), attempts = attempts - 1, phases = $2 where id = $1`, a.turnID, a.phases)
	err := r.DB.Once(ctx, a.tenantID, &b)
	switch {
	case isLeaseLost(err):
		return nil
	case err != nil:
		return fmt.Errorf("the lease was not handed back, and runs out within %s: %w", Lease, err)
	}
	r.signal("handed back")
	r.dispatch(ctx, slog.LevelInfo, a.tenantID, a.turnID) // whoever dispatches may be stopping too
	return nil
}

// outlive is ctx for what must still be written when ctx has ended: it ends a grace later.
func outlive(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(stopGrace)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel()
		case <-longer.Done():
		}
	})
	return longer, func() {
		stop()
		cancel()
	}
}
