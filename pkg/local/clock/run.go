package clock

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/agentplatform/agentplatform/pkg/clock"
	"github.com/agentplatform/agentplatform/pkg/local/workers"
)

// Fire delivers an occurrence: what is due at that instant, which is long past if no clock ran. It is called again for the same occurrence after an
// error, and after a process that was killed in the middle.
type Fire func(ctx context.Context, s clock.Schedule, occurrence time.Time) error

// The clock's own times.
const (
	round       = time.Minute      // a look without a reason
	leaseMargin = 30 * time.Second // of a claim over Config.Limit
	firstPause  = time.Second      // before an occurrence is tried again, doubled each time
	longPause   = time.Minute
	afterError  = time.Second // before the database is asked again
	beside      = 10 * time.Millisecond
	lastWords   = 10 * time.Second // for what has been delivered when it stops
)

// run is one Run.
type run struct {
	*Clock
	fire    Fire
	free    workers.Free // a token each that may deliver
	over    chan result
	mu      sync.Mutex
	names   map[string]bool // that are being delivered here
	working sync.WaitGroup
}

// Run delivers occurrences until ctx ends, then waits for those that are being delivered; their context ends with it. One that gives up for that
// reason is delivered again by the next Run. Run returns ctx's error.
func (c *Clock) Run(ctx context.Context, fire Fire) error {
	r := &run{Clock: c, fire: fire, free: workers.New(c.config.Workers), over: make(chan result, c.config.Workers), names: map[string]bool{}}
	var own sync.WaitGroup
	own.Go(func() { r.settle(ctx) })
	own.Go(func() { r.listen(ctx) })
	for last := (time.Time{}); ctx.Err() == nil; {
		now := c.config.Now().Round(0) // as the wall has it
		if last.IsZero() || now.Before(last.Add(-round)) {
			if err := r.turnBack(ctx, now); err != nil {
				slog.ErrorContext(ctx, "the clock cannot be turned back", "error", err)
			}
		}
		last = now
		r.wait(ctx, r.deliver(ctx))
	}
	r.working.Wait()
	close(r.over)
	own.Wait()
	return ctx.Err()
}

// deliver starts what is due, as far as workers are free, and says when to look again.
func (r *run) deliver(ctx context.Context) (next time.Time) {
	n := r.free.Take(ctx)
	if n == 0 {
		return next
	}
	claimed, next, err := r.claim(ctx, n)
	r.free.Give(n - len(claimed))
	if err != nil {
		if ctx.Err() == nil {
			slog.ErrorContext(ctx, "the clock cannot read what is due", "error", err)
		}
		return r.config.Now().Add(afterError)
	}
	if now := r.config.Now(); len(claimed) == 0 && !next.IsZero() && !next.After(now) {
		return now.Add(beside) // another clock is claiming it
	}
	for _, o := range claimed {
		r.working.Go(func() {
			result := r.attempt(ctx, o)
			r.free.Give(1)
			r.over <- result
		})
	}
	return next
}

func (r *run) wait(ctx context.Context, next time.Time) {
	pause := round
	if !next.IsZero() {
		pause = min(pause, next.Sub(r.config.Now()))
	}
	if pause <= 0 {
		return
	}
	workers.Pause(ctx, pause, r.look)
}

// listen looks whenever a schedule was put, by any clock on the database.
func (r *run) listen(ctx context.Context) {
	for ctx.Err() == nil {
		if err := r.notifications(ctx); ctx.Err() == nil {
			slog.WarnContext(ctx, "the clock does not hear of new schedules; it looks once a minute", "error", err)
			select {
			case <-time.After(afterError):
			case <-ctx.Done():
			}
		}
	}
}
