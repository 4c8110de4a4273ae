package verify

import (
	"context"
	"fmt"
	"time"
)

// silence is the end of a wait: what was asked did not answer in time.
type silence struct {
	who   string
	limit time.Duration
}

func (s *silence) Error() string { return fmt.Sprintf("%s has been silent for %s", s.who, s.limit) }

// watch bounds how long somebody may be silent. Between rest and wake nobody is waited for.
type watch struct {
	timer *time.Timer
	limit time.Duration
	stop  context.CancelCauseFunc
	bytes int
}

// watched is a context that ends with a *silence when who does not show a sign of life (wake) in time. end must be called.
func watched(ctx context.Context, who string, limit time.Duration) (context.Context, *watch) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &watch{limit: limit, stop: cancel}
	w.timer = time.AfterFunc(limit, func() { cancel(&silence{who, limit}) })
	return ctx, w
}

func (w *watch) wake() { w.timer.Reset(w.limit) }

// came is wake for n bytes that came, of millions: resetting a timer for each would be dear.
func (w *watch) came(n int) {
	if w.bytes += n; w.bytes >= 256<<10 {
		w.bytes = 0
		w.wake()
	}
}

func (w *watch) rest() { w.timer.Stop() }

func (w *watch) end() {
	w.timer.Stop()
	w.stop(nil)
}

// cause is err, or why its context ended if that is the reason.
func cause(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
