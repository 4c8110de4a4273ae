package clock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/clock"
	"github.com/agentplatform/agentplatform/pkg/clock/due"
)

// At each instant what is due is fired, with that instant, over the days on which three zones change their clocks.
func TestItFiresWhatIsDue(t *testing.T) {
	w := newWorld(t)
	c := w.open()
	w.run(c, w.keep)
	all := []clock.Schedule{
		{Name: "new-york", Expression: "cron(30 2 * * ? *)", TimeZone: "America/New_York"},
		{Name: "berlin", Expression: "cron(0 0 L * ? *)", TimeZone: "Europe/Berlin"},
		{Name: "lord-howe", Expression: "cron(0/30 1 ? * SUN#1 *)", TimeZone: "Australia/Lord_Howe"},
		{Name: "rate", Expression: "rate(2 days)", Start: began.Add(time.Hour)},
		{Name: "once", Expression: "at(2027-03-14T03:00:00)", TimeZone: "America/New_York"},
		{Name: "ends", Expression: "rate(1 day)", Start: began.Add(time.Minute), End: began.AddDate(0, 0, 2)},
	}
	for _, s := range all {
		w.put(c, s)
	}
	end := began.AddDate(0, 0, 30)
	fired := map[string]int{}
	for now := began; ; {
		var soonest time.Time
		want := map[occurrence]bool{}
		for _, s := range all {
			times, err := due.Times(s, began)
			require.NoError(t, err)
			next, more := times.Next(now)
			switch {
			case !more || next.After(end) || !soonest.IsZero() && next.After(soonest):
				continue
			case soonest.IsZero() || next.Before(soonest):
				clear(want)
				soonest = next
			}
			want[occurrence{s.Name, next.UTC()}] = true
		}
		if len(want) == 0 {
			break
		}
		w.hand.set(soonest.Add(-1))
		c.Look()
		w.quiet()
		w.hand.set(soonest)
		c.Look()
		for range len(want) {
			o := w.next()
			require.True(t, want[o], "%v is not of %v", o, want)
			delete(want, o)
			fired[o.name]++
		}
		w.quiet()
		now = soonest
	}
	require.Equal(t, map[string]int{"new-york": 29, "berlin": 1, "lord-howe": 2, "rate": 15, "once": 1, "ends": 2}, fired)
	require.Equal(t, 1, count(w, `enabled and wake is null and name = 'once'`), "what has run stays")
}

// Of 10,000 schedules that are due in one minute, two clocks on one database fire each once.
func TestTenThousandAndTwoClocks(t *testing.T) {
	const schedules = 10_000
	w := newWorld(t)
	a, b := w.open(), w.open()
	w.put(a, clock.Schedule{Name: "first", Expression: "cron(0 13 * * ? *)"})
	_, err := w.super.Exec(t.Context(), `insert into local_clock.schedules (name, expression, time_zone, enabled, input, made, occurrence, wake)
		select 's-' || n, expression, time_zone, enabled, input, made, occurrence + n % 60 * interval '1 second', wake + n % 60 * interval '1 second' from local_clock.schedules, generate_series(2, $1::int) n`, schedules)
	require.NoError(t, err)
	w.hand.set(began.Add(time.Hour + time.Minute))
	w.run(a, w.keep)
	w.run(b, w.keep)
	seen := map[string]bool{}
	for range schedules {
		o := w.next()
		require.False(t, seen[o.name], "%s is fired twice", o.name)
		seen[o.name] = true
	}
	w.quiet()
	require.Equal(t, schedules, count(w, `occurrence = '2027-03-14 13:00:00Z'`), "all wait for tomorrow")
}

// A clock that sleeps hears of what another puts, also after the database has thrown it out.
func TestItHearsOfWhatIsPut(t *testing.T) {
	w := newWorld(t)
	c, other := w.open(), w.open()
	w.run(c, w.keep)
	w.put(other, clock.Schedule{Name: "a", Expression: "rate(1 day)"})
	require.Equal(t, occurrence{"a", began}, w.next(), "at once")
	w.quiet()

	_, err := w.super.Exec(t.Context(), `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'agentplatform clock'`)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		return other.Put(t.Context(), clock.Schedule{Name: "b", Expression: "rate(1 day)", Enabled: true}) == nil
	}, time.Minute, time.Millisecond)
	require.Equal(t, occurrence{"b", began}, w.next())
}

// Nobody was there for five days: the last of what was missed is told, once, and then it goes on.
func TestLate(t *testing.T) {
	w := newWorld(t)
	c := w.open()
	w.put(c, clock.Schedule{Name: "hourly", Expression: "cron(0 * * * ? *)"})
	w.put(c, clock.Schedule{Name: "once", Expression: "at(2027-03-14T00:00:00)"})
	w.put(c, clock.Schedule{Name: "never-mind", Expression: "at(2027-04-14T00:00:00)"})
	w.hand.set(began.Add(5*24*time.Hour + time.Minute))
	again := w.open()
	w.run(again, w.keep)
	late := map[string]time.Time{}
	for range 2 {
		o := w.next()
		late[o.name] = o.at
	}
	require.Equal(t, map[string]time.Time{"hourly": began.AddDate(0, 0, 5), "once": time.Date(2027, 3, 14, 0, 0, 0, 0, time.UTC)}, late)
	w.quiet()
	w.hand.set(began.Add(5*24*time.Hour + time.Hour))
	again.Look()
	require.Equal(t, occurrence{"hourly", began.Add(5*24*time.Hour + time.Hour)}, w.next())
	w.quiet()
}

// What a killed process had claimed is fired by the next one, when the claim has ended.
func TestKilled(t *testing.T) {
	w := newWorld(t)
	c := w.open()
	w.put(c, clock.Schedule{Name: "a", Expression: "rate(1 day)"})
	killed := &run{Clock: c, names: map[string]bool{}}
	claimed, _, err := killed.claim(t.Context(), 16)
	require.NoError(t, err)
	require.Len(t, claimed, 1)

	again := w.open()
	w.run(again, w.keep)
	w.hand.set(began.Add(89 * time.Second))
	again.Look()
	require.Equal(t, 1, count(w, `wake > occurrence`), "claimed")
	w.hand.set(began.Add(90 * time.Second))
	again.Look()
	require.Equal(t, occurrence{"a", began}, w.next())
	w.quiet()
	require.NoError(t, killed.write(t.Context(), []result{{name: "a", claim: claimed[0].claim}}), "it was not dead")
	require.Equal(t, 1, count(w, `occurrence = '2027-03-14 12:00:00Z'`), "its claim is over")
}

// What is being fired when the clock stops gives up and is fired again by the next Run; what finishes is over.
func TestStop(t *testing.T) {
	w := newWorld(t)
	c := w.open()
	w.put(c, clock.Schedule{Name: "gives-up", Expression: "rate(1 day)"})
	w.put(c, clock.Schedule{Name: "finishes", Expression: "rate(1 day)"})
	stop := w.run(c, func(ctx context.Context, s clock.Schedule, at time.Time) error {
		_ = w.keep(ctx, s, at)
		<-ctx.Done()
		if s.Name == "finishes" {
			return nil
		}
		return ctx.Err()
	})
	w.next()
	w.next()
	stop()
	w.run(c, w.keep)
	require.Equal(t, occurrence{"gives-up", began}, w.next())
	w.quiet()
}

func TestFailures(t *testing.T) {
	w := newWorld(t)
	c := w.open()
	failed := errors.New("no")
	tries := map[time.Time]int{}
	w.run(c, func(ctx context.Context, s clock.Schedule, at time.Time) error {
		defer func() { _ = w.keep(ctx, s, at) }()
		if tries[at.UTC()]++; tries[at.UTC()] == 1 {
			panic("no")
		}
		if at.UTC().Equal(began) && tries[at.UTC()] == 2 {
			return nil
		}
		return failed
	})
	w.put(c, clock.Schedule{Name: "a", Expression: "rate(1 day)"})
	w.next()
	w.awaits("a", began, began.Add(time.Second), 1)
	w.hand.set(began.Add(time.Second))
	c.Look()
	w.next()
	tomorrow := began.AddDate(0, 0, 1)
	w.awaits("a", tomorrow, tomorrow, 0)

	w.hand.set(tomorrow)
	c.Look()
	w.next()
	w.awaits("a", tomorrow, tomorrow.Add(time.Second), 1)
	w.hand.set(tomorrow.Add(time.Second))
	c.Look()
	w.next()
	w.awaits("a", tomorrow, tomorrow.Add(3*time.Second), 2)
	w.hand.set(tomorrow.Add(3 * time.Second))
	c.Look()
	w.next()
	w.awaits("a", began.AddDate(0, 0, 2), began.AddDate(0, 0, 2), 0) // given up
	w.quiet()
}

// What is called again after five minutes is late, and no sooner is it given up.
func TestHowLongItTries(t *testing.T) {
	w := newWorld(t)
	c, err := Open(t.Context(), Config{URL: w.db.SuperURL, Now: w.hand.Now})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	w.run(c, func(ctx context.Context, s clock.Schedule, at time.Time) error {
		return errors.Join(w.keep(ctx, s, at), errors.New("no"))
	})
	w.put(c, clock.Schedule{Name: "a", Expression: "rate(1 day)"})
	for {
		require.Equal(t, occurrence{"a", began}, w.next())
		var wake, due time.Time
		require.Eventually(t, func() bool {
			claim := w.hand.Now().Add(time.Minute + leaseMargin)
			return w.super.QueryRow(t.Context(), `select wake, occurrence from local_clock.schedules where wake > $1 and wake <> $2`, w.hand.Now(), claim).Scan(&wake, &due) == nil
		}, time.Minute, time.Millisecond)
		if !due.Equal(began) {
			break
		}
		w.hand.set(wake)
		c.Look()
	}
	require.Greater(t, w.hand.Now().Sub(began), 5*time.Minute)
	w.quiet()
}

// A Put that moves nothing leaves the occurrences alone; one that does begins anew, also while one is being fired. A deleted one is not fired again.
func TestPutAndDelete(t *testing.T) {
	w := newWorld(t)
	c := w.open()
	let := make(chan struct{})
	inputs := make(chan string, 100)
	w.run(c, func(ctx context.Context, s clock.Schedule, at time.Time) error {
		inputs <- string(s.InputOf(at))
		_ = w.keep(ctx, s, at)
		<-let
		return nil
	})
	a := clock.Schedule{Name: "a", Expression: "rate(1 day)", Input: []byte(`{"n":1,"at":"` + clock.ScheduledTime + `"}`)}
	w.put(c, a)
	require.Equal(t, occurrence{"a", began}, w.next())
	require.Equal(t, `{"n":1,"at":"2027-03-13T12:00:00Z"}`, <-inputs)
	w.put(c, a)
	a.Input = []byte(`{"n":2}`)
	w.put(c, a)
	let <- struct{}{}
	tomorrow := began.AddDate(0, 0, 1)
	w.awaits("a", tomorrow, tomorrow, 0)

	w.hand.set(tomorrow)
	c.Look()
	require.Equal(t, occurrence{"a", tomorrow}, w.next())
	require.Equal(t, `{"n":2}`, <-inputs)
	a.Expression = "cron(0 18 * * ? *)"
	w.put(c, a)
	let <- struct{}{}
	w.awaits("a", tomorrow.Add(6*time.Hour), tomorrow.Add(6*time.Hour), 0)

	a.Enabled = false
	require.NoError(t, c.Put(t.Context(), a))
	w.hand.set(tomorrow.Add(7 * time.Hour))
	c.Look()
	w.quiet()
	a.Expression = "rate(1 day)"
	w.put(c, a)
	require.Equal(t, occurrence{"a", tomorrow.Add(7 * time.Hour)}, w.next())
	require.NoError(t, c.Delete(t.Context(), "a"))
	let <- struct{}{}
	w.hand.set(tomorrow.AddDate(0, 0, 9))
	c.Look()
	w.quiet()
	require.Zero(t, count(w, `true`))
}

func TestOpen(t *testing.T) {
	w := newWorld(t)
	var group sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		group.Go(func() {
			c, err := Open(t.Context(), Config{URL: w.db.SuperURL})
			if errs[i] = err; err == nil {
				c.Close()
			}
		})
	}
	group.Wait()
	require.NoError(t, errors.Join(errs...), "several at once")
	require.Equal(t, 0, count(w, `true`))

	_, err := w.super.Exec(t.Context(), `insert into local_clock.version values ($1)`, len(versions)+1)
	require.NoError(t, err)
	_, err = Open(t.Context(), Config{URL: w.db.SuperURL})
	require.ErrorContains(t, err, fmt.Sprintf("the clock's tables: they are of version %d, made by a newer release; this one knows up to %d", len(versions)+1, len(versions)))
	_, err = Open(t.Context(), Config{URL: w.db.AppURL})
	require.ErrorContains(t, err, "the clock's tables: ", "the application's role may not")
}

// A machine that begins a year ahead and is put right: what is due is fired as before, whether the clock ran meanwhile or begins anew.
func TestTheTimeIsPutBack(t *testing.T) {
	for name, begins := range map[string]bool{"while it runs": false, "while it is off": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := w.open()
			w.put(c, clock.Schedule{Name: "daily", Expression: "cron(0 13 * * ? *)"})
			w.put(c, clock.Schedule{Name: "once", Expression: "at(2027-03-14T11:00:00)"})
			w.hand.set(began.AddDate(1, 0, 0))
			stop := w.run(c, w.keep)
			w.next()
			w.next()
			w.put(c, clock.Schedule{Name: "made-then", Expression: "rate(1 hour)"})
			w.next()
			w.quiet()
			if begins {
				stop()
			}
			w.hand.set(began)
			if begins {
				w.run(c, w.keep)
			}
			c.Look()
			w.awaits("daily", began.Add(time.Hour), began.Add(time.Hour), 0)
			w.awaits("made-then", began.Add(time.Hour), began.Add(time.Hour), 0)
			w.hand.set(began.Add(time.Hour))
			c.Look()
			require.ElementsMatch(t, []occurrence{{"daily", began.Add(time.Hour)}, {"made-then", began.Add(time.Hour)}}, []occurrence{w.next(), w.next()})
			w.quiet()
			require.Equal(t, 1, count(w, `name = 'once' and wake is null`), "what ran once is over")
		})
	}
}
