package webhook

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// windowAt is a Window whose clock a test sets.
func windowAt(now *time.Time) *Window { return &Window{Now: func() time.Time { return *now }} }

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// naive is what Window promises, spelled out: every accepted call, for ever.
type naive map[string][]time.Time

// wait is how long until fewer than limit calls are within a minute.
func (n naive) wait(id string, limit int, now time.Time) time.Duration {
	var ends []time.Duration // in how long each call of the last minute is a minute old, soonest first
	for _, call := range n[id] {
		if age := now.Sub(call); age < time.Minute {
			ends = append(ends, time.Minute-age)
		}
	}
	if len(ends) < limit {
		return 0
	}
	return ends[len(ends)-limit]
}

// Whatever the calls, the webhooks and the limits of each moment: a call is taken exactly when fewer than limit were within the minute
// before it, and the wait that a refused one is told is exact.
func TestWindowIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now, expected := noon, naive{}
		w := windowAt(&now)
		take := func(id string, limit int) time.Duration {
			want := expected.wait(id, limit, now)
			got := w.Take(id, limit)
			if got != want {
				t.Fatalf("%s at %v with limit %d: wait %v, want %v", id, now.Sub(noon), limit, got, want)
			}
			if got == 0 {
				expected[id] = append(expected[id], now)
			}
			return got
		}
		pause := rapid.OneOf(rapid.SampledFrom([]time.Duration{0, 0, 1, time.Second, time.Minute - 1, time.Minute, time.Minute + 1, time.Hour}),
			rapid.Map(rapid.Int64Range(0, int64(40*time.Second)), func(n int64) time.Duration { return time.Duration(n) }))
		for range rapid.IntRange(1, 60).Draw(t, "calls") {
			now = now.Add(pause.Draw(t, "pause"))
			id := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "webhook")
			limit := rapid.IntRange(1, 5).Draw(t, "limit")
			if wait := take(id, limit); wait > 0 && rapid.Bool().Draw(t, "again") {
				now = now.Add(wait - 1)
				if got := take(id, limit); got != 1 {
					t.Fatalf("one nanosecond early: wait %v", got)
				}
				now = now.Add(1)
				if got := take(id, limit); got != 0 {
					t.Fatalf("after the wait: wait %v", got)
				}
			}
		}
	})
}

// With one limit there is no minute, wherever it begins, with more calls than that.
func TestNoMinuteHasMoreThanTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := noon
		w := windowAt(&now)
		limit := rapid.IntRange(1, 6).Draw(t, "limit")
		var taken []time.Time
		for range 200 {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(15*time.Second)).Draw(t, "pause")))
			if w.Take("a", limit) == 0 {
				taken = append(taken, now)
			}
		}
		for i := limit; i < len(taken); i++ {
			if d := taken[i].Sub(taken[i-limit]); d < time.Minute {
				t.Fatalf("%d calls within %v", limit+1, d)
			}
		}
	})
}

func TestWindow(t *testing.T) {
	now := noon
	w := windowAt(&now)
	for i := range 3 {
		now = noon.Add(time.Duration(i) * time.Second)
		require.Zero(t, w.Take("a", 3))
	}
	require.Equal(t, 58*time.Second, w.Take("a", 3))
	require.Equal(t, 58*time.Second, w.Take("a", 3), "a refused call is not counted")
	require.Zero(t, w.Take("b", 1), "webhooks are apart")
	require.Equal(t, 60*time.Second, w.Take("a", 1), "lowered: all three must be over")
	require.Equal(t, 59*time.Second, w.Take("a", 2))
	require.Zero(t, w.Take("a", 4), "raised: one more at once")
	require.Equal(t, 58*time.Second, w.Take("a", 4))
	now = noon.Add(time.Minute)
	require.Zero(t, w.Take("a", 4))
	require.Equal(t, time.Second, w.Take("a", 4))
}

func TestWindowWithoutAClock(t *testing.T) {
	var w Window
	require.Zero(t, w.Take("a", 1))
	wait := w.Take("a", 1)
	require.Positive(t, wait)
	require.LessOrEqual(t, wait, time.Minute)
}

// A window holds what was called in the last two minutes, however many webhooks there are.
func TestWindowForgets(t *testing.T) {
	now := noon
	w := windowAt(&now)
	for i := range 1000 {
		w.Take(fmt.Sprint("early ", i), 5)
	}
	now = noon.Add(30 * time.Second)
	w.Take("later", 5)
	require.Len(t, w.calls, 1001)
	now = noon.Add(time.Minute)
	w.Take("x", 5)
	require.Len(t, w.calls, 2)
	now = noon.Add(2 * time.Minute)
	w.Take("y", 5)
	require.Len(t, w.calls, 1)

	for range 100_000 { // a busy one does not grow either
		now = now.Add(time.Second)
		require.Zero(t, w.Take("busy", 60))
	}
	require.LessOrEqual(t, len(w.calls["busy"]), 60)
	require.LessOrEqual(t, cap(w.calls["busy"]), 512)
}

func TestConcurrentTake(t *testing.T) {
	now := noon
	w := windowAt(&now)
	var taken, refused atomic.Int32
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			for range 20 {
				if w.Take("a", 100) == 0 {
					taken.Add(1)
				} else {
					refused.Add(1)
				}
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 100, taken.Load())
	require.EqualValues(t, 900, refused.Load())
}
