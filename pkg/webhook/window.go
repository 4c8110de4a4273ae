package webhook

import (
	"sync"
	"time"
)

// Window counts the calls of each webhook over the last minute, in the memory of one function instance: a hard cap, no queue. It starts empty
// with the instance, so over all instances a webhook may be called as many times its limit as there are of them.
//
// It remembers each accepted call until it is a minute old, so there is no minute, wherever it begins, with more than the limit.
type Window struct {
	Now func() time.Time // default time.Now

	mu    sync.Mutex
	calls map[string][]time.Time // by webhook, oldest first
	swept time.Time              // when webhooks without calls were last forgotten
}

const windowLength = time.Minute

// Take counts a call. Beyond the limit it counts nothing and tells how long to wait until one is taken.
func (w *Window) Take(webhookID string, limit int) (wait time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if w.Now != nil {
		now = w.Now()
	}
	w.sweep(now)
	calls := within(w.calls[webhookID], now)
	if over := len(calls) - limit; over >= 0 {
		return calls[over].Add(windowLength).Sub(now)
	}
	w.calls[webhookID] = append(calls, now)
	return 0
}

// within are the calls of the last minute.
func within(calls []time.Time, now time.Time) []time.Time {
	for len(calls) > 0 && now.Sub(calls[0]) >= windowLength {
		calls = calls[1:]
	}
	return calls
}

// sweep forgets, once a minute, the webhooks that were not called.
func (w *Window) sweep(now time.Time) {
	if w.calls != nil && now.Sub(w.swept) < windowLength {
		return
	}
	w.swept = now
	kept := map[string][]time.Time{}
	for id, calls := range w.calls {
		if calls = within(calls, now); len(calls) > 0 {
			kept[id] = append(make([]time.Time, 0, len(calls)), calls...)
		}
	}
	w.calls = kept
}
