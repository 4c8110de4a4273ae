package ledger

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/metric"
)

// pollEvery is how often a drainer that waits for its beacon's time looks for new events.
const pollEvery = 10 * time.Millisecond

// retryBeacon is the least time after which a beacon that failed is tried again.
const retryBeacon = time.Second

// Drain moves what is in the outbox into the chains and tells the bucket how far they have come. It returns when the outbox is empty and
// a beacon covers every head, or shortly before ctx's deadline; a caller that comes while another drains returns nil at once.
//
// Errors: ErrRollback and ErrForeign (nothing was written), ErrDamaged (all but the named tenants went on), or what database and bucket say.
// After any of them the next call takes up where this one ended.
func (l *Ledger) Drain(ctx context.Context) error {
	l.again.Store(true) // before the lock is tried: whoever holds it then sees this when it has let go
	for l.again.Load() && l.draining.TryLock() {
		l.again.Store(false)
		err := l.drain(ctx)
		l.draining.Unlock()
		if err != nil {
			return alarmed(ctx, err)
		}
	}
	return nil
}

// run is one call of Drain.
type run struct {
	*Ledger
	compared    bool          // the bucket was, with the database
	careful     int           // so many rows are still drained one by one
	poison      map[id]string // events that the database does not take, and why
	broken      []id          // tenants whose chain is damaged: their events wait
	drained     int           // events
	quarantined int           // events
	beaconDue   time.Time     // by this machine's own clock
	failed      error         // the newest beacon
	errs        []error       // what did not stop the run
}

func (l *Ledger) drain(ctx context.Context) error {
	r := &run{Ledger: l, poison: map[id]string{}, broken: []id{}}
	err := r.loop(ctx)
	if r.drained > 0 || r.quarantined > 0 {
		figure(ctx, "audit.drained", metric.Count, float64(r.drained))
	}
	if r.quarantined > 0 {
		figure(ctx, "audit.quarantined.new", metric.Count, float64(r.quarantined))
	}
	return errors.Join(append(r.errs, r.failed, err)...)
}

func (r *run) loop(ctx context.Context) error {
	mine, err := r.batch(ctx) // the first is always tried: it also compares bucket and database
	for mine && err == nil && !r.late(ctx) {
		var s state
		if s, err = r.look(ctx); err != nil {
			break
		}
		left := time.Until(r.beaconDue)
		switch {
		case s.unbeaconed && left <= 0:
			mine, err = r.tell(ctx)
		case s.pending:
			mine, err = r.batch(ctx)
		case !s.unbeaconed || r.failed != nil:
			return err // none
		default:
			wait(ctx, min(pollEvery, left))
		}
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		slog.InfoContext(ctx, "draining was cut short", "drained", r.drained) // whatever was begun is undone; the next call goes on
		err = nil
	}
	return err
}

// late reports whether there is no time left to begin anything.
func (r *run) late(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && time.Until(deadline) < r.Margin
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// state is what there is to do.
type state struct{ pending, unbeaconed bool }

// look asks without a lock: what it does not see yet, a wake will tell of.
func (r *run) look(ctx context.Context) (s state, err error) {
	err = r.DB.Unbound(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `select exists (select from audit_outbox where state = 'pending' and tenant_id <> all ($1)),
			exists (select from audit_heads where length > beaconed)`, r.broken).Scan(&s.pending, &s.unbeaconed)
	})
	return s, err
}

// tell makes a beacon. One that cannot be made does not keep events from being chained: it is tried again when the next is due.
func (r *run) tell(ctx context.Context) (mine bool, err error) {
	mine, err = r.makeBeacon(ctx)
	if errors.Is(err, ErrRollback) || errors.Is(err, ErrForeign) {
		return false, err
	}
	r.failed, r.beaconDue = err, time.Now().Add(r.BeaconEvery)
	if err != nil {
		r.beaconDue = time.Now().Add(max(r.BeaconEvery, retryBeacon))
	}
	return mine || err != nil, nil
}
