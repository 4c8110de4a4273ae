package turn

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	watchEvery   = time.Second // how soon an interrupt is seen
	watchTimeout = 5 * time.Second
	renewEvery   = 15 * time.Second // well within Lease
)

// hold keeps the attempt's lease while it works and ends its context when it is lost or the turn is interrupted. The returned function
// stops that; it may be called twice.
func (r *Runner) hold(ctx context.Context, a *attempt) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var done sync.WaitGroup
	stop := make(chan struct{})
	done.Go(func() {
		tick := time.NewTicker(watchEvery)
		defer tick.Stop()
		renewed := time.Now()
		for {
			select {
			case <-stop:
				return
			case <-ctx.Done():
				return
			case now := <-tick.C:
				renew := now.Sub(renewed) >= renewEvery
				err := r.watch(ctx, a, renew)
				switch {
				case errors.Is(err, errInterrupted), errors.Is(err, errCancelled), errors.Is(err, errLeaseLost):
					cancel(err)
					return
				case err != nil:
					slog.WarnContext(ctx, "watching the lease failed", "turn_id", a.turnID, "error", err)
				case renew:
					renewed = now
				}
			}
		}
	})
	var once sync.Once
	return ctx, func() {
		once.Do(func() {
			close(stop)
			done.Wait()
			cancel(nil)
		})
	}
}

// watch looks whether the attempt still holds its turn and nobody interrupts it; renew extends the lease.
func (r *Runner) watch(ctx context.Context, a *attempt, renew bool) error {
	ctx, cancel := context.WithTimeout(ctx, watchTimeout) // a dead connection must not keep the turn from its end
	defer cancel()
	held, interrupt, cancelled := false, false, false
	var b pgx.Batch
	if renew {
		b.Queue(`update thread_turns set lease_until = clock_timestamp() + $3 where id = $1 and lease_id = $2 and status = 'running'`, a.turnID, a.lease, Lease)
	}
	b.Queue(`select interrupt, cancel from thread_turns where id = $1 and lease_id = $2 and status = 'running'`, a.turnID, a.lease).Query(func(rows pgx.Rows) error {
		held = false // the batch may be run again
		_, err := pgx.ForEachRow(rows, []any{&interrupt, &cancelled}, func() error {
			held = true
			return nil
		})
		return err
	})
	if err := r.DB.Once(ctx, a.tenantID, &b); err != nil {
		return err
	}
	switch {
	case !held:
		return errLeaseLost
	case cancelled:
		return errCancelled
	case interrupt:
		return errInterrupted
	}
	return nil
}

// isLeaseLost reports whether hold_turn stopped a transaction.
func isLeaseLost(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "APL01"
}
