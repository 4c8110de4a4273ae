// Package clock_test holds every clock to the same contract.
package clock_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/clock"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// adapter is a Clock under the contract, and another of the same schedules.
type adapter struct{ clock, again clock.Clock }

func testContract(t *testing.T, a adapter) {
	day := time.Now().UTC().AddDate(0, 0, 1).Truncate(24 * time.Hour)
	full := clock.Schedule{Name: "Full_1.a-b", Expression: "cron(15 10 ? * 6L *)", TimeZone: "Australia/Lord_Howe", Start: day, End: day.AddDate(1, 0, 0), Enabled: true,
		Input: json.RawMessage(`{"text":"Grüße, 你好 🎉 <b> \u0000 \\ \"","at":"<aws.scheduler.scheduled-time>","n":1.0}`)}
	put := func(t *testing.T, s clock.Schedule) {
		t.Helper()
		require.NoError(t, a.clock.Put(t.Context(), s))
	}
	get := func(t *testing.T, name string) clock.Schedule {
		t.Helper()
		s, err := a.again.Get(t.Context(), name)
		require.NoError(t, err)
		return s
	}
	list := func(t *testing.T) (all map[string]bool, pages int) {
		t.Helper()
		all = map[string]bool{}
		for token := (*string)(nil); ; pages++ {
			p, err := a.again.List(t.Context(), token)
			require.NoError(t, err)
			require.LessOrEqual(t, len(p.Items), 100)
			for _, e := range p.Items {
				require.NotContains(t, all, e.Name, "each is there once")
				all[e.Name] = e.Enabled
			}
			if p.NextToken == nil {
				return all, pages + 1
			}
			token = p.NextToken
		}
	}

	t.Run("nothing", func(t *testing.T) {
		all, pages := list(t)
		require.Empty(t, all)
		require.Equal(t, 1, pages)
		for _, name := range []string{"missing", "", "no such name", "näme", strings.Repeat("x", 65), "a/b", ".."} {
			_, err := a.clock.Get(t.Context(), name)
			require.ErrorIs(t, err, clock.ErrNotFound, "%q", name)
			require.NoError(t, a.clock.Delete(t.Context(), name), "%q", name)
		}
	})
	t.Run("put and get", func(t *testing.T) {
		put(t, full)
		require.Equal(t, full, get(t, full.Name))
		put(t, full)
		require.Equal(t, full, get(t, full.Name), "again")
		put(t, clock.Schedule{Name: "bare", Expression: "rate(5 minutes)"})
		require.Equal(t, clock.Schedule{Name: "bare", Expression: "rate(5 minutes)", TimeZone: "UTC", Input: json.RawMessage(`{}`)}, get(t, "bare"), "in order")
		long := strings.Repeat("n", 64)
		put(t, clock.Schedule{Name: long, Expression: "rate(5 minutes)", Enabled: true})
		require.True(t, get(t, long).Enabled)
		large := clock.Schedule{Name: "large", Expression: "rate(1 day)", TimeZone: "UTC", Input: json.RawMessage(`"` + strings.Repeat("é", 32_000) + `"`)}
		put(t, large)
		require.Equal(t, large, get(t, "large"))
	})
	t.Run("a replacement is whole", func(t *testing.T) {
		next := clock.Schedule{Name: full.Name, Expression: "at(2199-01-01T00:00:00)", TimeZone: "Europe/Berlin", Enabled: true, Input: json.RawMessage(`[]`)}
		put(t, next)
		require.Equal(t, next, get(t, full.Name))
		next.Expression, next.Enabled = "rate(2 hours)", false
		put(t, next)
		require.Equal(t, next, get(t, full.Name))
		all, _ := list(t)
		require.False(t, all[full.Name])
		put(t, full)
		require.Equal(t, full, get(t, full.Name))
	})
	t.Run("bounds that are past", func(t *testing.T) {
		for _, text := range []string{"rate(7 days)", "cron(0 0 * * ? *)"} {
			past := clock.Schedule{Name: "past", Expression: text, TimeZone: "UTC", Start: day.AddDate(-1, 0, 0), Enabled: true, Input: json.RawMessage(`{}`)}
			put(t, past)
			require.Equal(t, past, get(t, "past"), text)
		}
		over := clock.Schedule{Name: "past", Expression: "rate(1 day)", TimeZone: "UTC", Start: day.AddDate(-3, 0, 0), End: day.AddDate(-2, 0, 0), Input: json.RawMessage(`{}`)}
		put(t, over)
		require.Equal(t, over, get(t, "past"), "it is over, and disabled")
		at := clock.Schedule{Name: "past", Expression: "at(2199-01-01T00:00:00)", TimeZone: "UTC", Start: day, End: day, Enabled: true, Input: json.RawMessage(`{}`)}
		put(t, at)
		at.Start, at.End = time.Time{}, time.Time{}
		require.Equal(t, at, get(t, "past"), "an at has no bounds")
	})
	t.Run("refused", func(t *testing.T) {
		for want, s := range map[string]clock.Schedule{
			"name has 1 to 64":   {Name: "no such name", Expression: "rate(1 day)"},
			"field day-of-week":  {Name: "r", Expression: "cron(0 0 ? * 8 *)"},
			"is not a time zone": {Name: "r", Expression: "rate(1 day)", TimeZone: "Mars/Olympus"},
			"input is not JSON":  {Name: "r", Expression: "rate(1 day)", Input: json.RawMessage(`{`)},
			"would never run":    {Name: "r", Expression: "at(2020-01-01T00:00:00)", Enabled: true},
			"before its start":   {Name: "r", Expression: "rate(1 day)", Start: day.AddDate(0, 0, 2), End: day},
		} {
			err := a.clock.Put(t.Context(), s)
			require.ErrorContains(t, err, want)
			require.Equal(t, fault.ValidationError, fault.From(err).Type, "who wrote it may read it")
		}
		require.ErrorIs(t, a.clock.Put(t.Context(), clock.Schedule{Name: "r", Expression: "cron(0 0 30 2 ? *)", Enabled: true}), clock.ErrNeverRuns)
		_, err := a.clock.Get(t.Context(), "r")
		require.ErrorIs(t, err, clock.ErrNotFound, "nothing was put")
	})
	t.Run("delete", func(t *testing.T) {
		require.NoError(t, a.clock.Delete(t.Context(), full.Name))
		_, err := a.again.Get(t.Context(), full.Name)
		require.ErrorIs(t, err, clock.ErrNotFound)
		require.ErrorContains(t, err, full.Name)
		require.NoError(t, a.again.Delete(t.Context(), full.Name), "again")
		put(t, full)
		require.Equal(t, full, get(t, full.Name))
	})
	t.Run("by many at once", func(t *testing.T) {
		const callers = 8
		errs := make([]error, 3*callers)
		one := func(i int) clock.Schedule {
			return clock.Schedule{Name: "one", Expression: fmt.Sprintf("rate(%d minutes)", i+1), TimeZone: "UTC", Enabled: i%2 == 0, Input: json.RawMessage(fmt.Sprintf(`{"caller":%d}`, i))}
		}
		var group sync.WaitGroup
		for i := range callers {
			group.Go(func() { errs[3*i] = a.clock.Put(t.Context(), one(i)) })
			group.Go(func() { errs[3*i+1] = a.again.Delete(t.Context(), "one") })
			group.Go(func() { errs[3*i+2] = a.again.Put(t.Context(), one(i)) })
		}
		group.Wait()
		for _, err := range errs {
			require.NoError(t, err)
		}
		put(t, one(callers))
		group = sync.WaitGroup{}
		for i := range callers {
			group.Go(func() { errs[i] = a.clock.Put(t.Context(), one(i)) })
		}
		group.Wait()
		for _, err := range errs[:callers] {
			require.NoError(t, err)
		}
		var caller struct{ Caller int }
		got := get(t, "one")
		require.NoError(t, json.Unmarshal(got.Input, &caller))
		require.Equal(t, one(caller.Caller), got, "one of them, as a whole")
	})
	t.Run("more than two pages", func(t *testing.T) {
		before, _ := list(t)
		for i := range 250 {
			put(t, clock.Schedule{Name: fmt.Sprintf("many-%d", i), Expression: "rate(1 day)", Enabled: i%3 == 0})
		}
		all, pages := list(t)
		require.Len(t, all, len(before)+250)
		require.GreaterOrEqual(t, pages, 3)
		for i := range 250 {
			require.Equal(t, i%3 == 0, all[fmt.Sprintf("many-%d", i)])
		}
	})
	t.Run("a cancelled call", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, a.clock.Put(ctx, clock.Schedule{Name: "cancelled", Expression: "rate(1 day)"}), context.Canceled)
		require.ErrorIs(t, a.clock.Delete(ctx, full.Name), context.Canceled)
		_, err := a.clock.Get(ctx, full.Name)
		require.ErrorIs(t, err, context.Canceled)
		_, err = a.clock.List(ctx, nil)
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, full, get(t, full.Name))
		_, err = a.clock.Get(t.Context(), "cancelled")
		require.ErrorIs(t, err, clock.ErrNotFound)
	})
}
