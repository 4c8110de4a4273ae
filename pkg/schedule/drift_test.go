package schedule_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/clock"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/metric"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/schedule"
	"github.com/agentplatform/agentplatform/pkg/workflow"
)

// figures is a sink that remembers the last value of each figure.
type figures struct {
	mu   sync.Mutex
	last map[string]float64
}

func (f *figures) Take(e metric.Event) []slog.Attr {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range e.Sets {
		for _, figure := range s.Figures {
			f.last[figure.Name] = figure.Value
		}
	}
	return nil
}

// Every way to drift is found, settled, and counted. Alone, for the metrics are the process'.
func TestDriftIsSettledAndCounted(t *testing.T) {
	sink := &figures{last: map[string]float64{}}
	metric.SetDefault(sink)
	defer metric.SetDefault(nil)
	k := newKeep(t)
	is := func(s schedule.Schedule) func() {
		was := k.onClock(s.ID)
		return func() { require.Equal(t, was, k.onClock(s.ID)) }
	}
	put := func(change func(c *clock.Schedule)) func(s schedule.Schedule) {
		return func(s schedule.Schedule) {
			c := k.onClock(s.ID)
			change(&c)
			require.NoError(t, k.clock.Put(t.Context(), c))
		}
	}
	for _, c := range []struct {
		name    string
		drift   schedule.Drift
		happens func(s schedule.Schedule)
	}{
		{"deleted at the clock", schedule.Missing, func(s schedule.Schedule) { require.NoError(t, k.clock.Delete(t.Context(), s.ID)) }},
		{"another expression", schedule.Changed, put(func(c *clock.Schedule) { c.Expression = "rate(2 hours)" })},
		{"another zone", schedule.Changed, put(func(c *clock.Schedule) { c.TimeZone = "Asia/Tokyo" })},
		{"another start", schedule.Changed, put(func(c *clock.Schedule) { c.Start = c.Start.Add(time.Hour) })},
		{"an end", schedule.Changed, put(func(c *clock.Schedule) { c.End = c.Start.AddDate(1, 0, 0) })},
		{"another input", schedule.Changed, put(func(c *clock.Schedule) { c.Input = []byte(`{"tenantId":"another"}`) })},
		{"disabled at the clock", schedule.Switched, put(func(c *clock.Schedule) { c.Enabled = false })},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := k.make(nil)
			settled := is(s)
			k.advance(2 * time.Minute)
			require.Empty(t, k.reconcile().Found, "nothing has drifted")
			require.Zero(t, sink.last["schedule.drift"])
			c.happens(s)
			require.Equal(t, map[schedule.Drift]int{c.drift: 1}, k.reconcile().Found)
			require.Equal(t, []float64{1, 1}, []float64{sink.last["schedule.drift"], sink.last["schedule.drift."+string(c.drift)]})
			settled()
			require.Empty(t, k.reconcile().Found)
			k.delete(s.ID)
			require.NoError(t, k.keeper().Settle(t.Context(), k.TenantID, s.ID))
			require.Zero(t, k.rows())
		})
	}
	t.Run("enabled at the clock", func(t *testing.T) {
		s := k.make(object{"enabled": false})
		settled := is(s)
		k.advance(2 * time.Minute)
		put(func(c *clock.Schedule) { c.Enabled = true })(s)
		require.Equal(t, map[schedule.Drift]int{schedule.Switched: 1}, k.reconcile().Found)
		settled()
	})
	t.Run("known to the clock only", func(t *testing.T) {
		for _, name := range []string{ident.New(), "left-over"} {
			require.NoError(t, k.clock.Put(t.Context(), clock.Schedule{Name: name, Expression: "rate(1 minute)", Enabled: true}))
			require.Equal(t, map[schedule.Drift]int{schedule.Unknown: 1}, k.reconcile().Found)
			k.notOnClock(name)
		}
	})
	t.Run("the clock was not told of it, of a change, of a deletion", func(t *testing.T) {
		k := newKeep(t)
		s := k.written(object{"expression": "rate(3 hours)"})
		require.False(t, s.Settled)
		require.Empty(t, k.reconcile().Found, "whoever wrote it is telling the clock at this moment")
		require.Equal(t, "rate(3 hours)", k.onClock(s.ID).Expression, "but it is settled")
		s = k.update(s.ID, object{"expression": "cron(0 9 ? * MON-FRI *)", "timeZone": "Europe/Berlin"})
		require.False(t, s.Settled)
		k.advance(2 * time.Minute)
		require.Equal(t, map[schedule.Drift]int{schedule.Untold: 1}, k.reconcile().Found)
		require.Equal(t, []string{"cron(0 9 ? * MON-FRI *)", "Europe/Berlin"}, []string{k.onClock(s.ID).Expression, k.onClock(s.ID).TimeZone})
		k.delete(s.ID)
		k.advance(2 * time.Minute)
		require.Equal(t, map[schedule.Drift]int{schedule.Undeleted: 1}, k.reconcile().Found)
		k.notOnClock(s.ID)
		require.Empty(t, k.reconcile().Found)
	})
}

// All schedules are looked at within as many checks as it takes to make 200 calls each, and no check makes many more.
func TestDriftThatAListDoesNotShowIsFoundInTurns(t *testing.T) {
	t.Parallel()
	k := newKeep(t)
	k.change(`insert into schedules (tenant_id, id, name, agent_id, prompt, expression, time_zone, enabled, missed, since, put_revision, created_by, created_at, updated_at)
		select $1, gen_random_uuid(), 'Many', $2, 'Go.', 'rate(1 hour)', 'UTC', true, 'skip', date_trunc('second', now()), 1, $1, now() - interval '1 hour', now() - interval '1 hour'
		from generate_series(1, 700)`, k.TenantID, k.AgentID)
	require.Equal(t, 700, k.reconcile().Found[schedule.Missing])
	k.change(`update local_clock.schedules set expression = 'rate(2 hours)'`)
	found := 0
	for range 4 {
		n := k.reconcile().Found[schedule.Changed]
		require.InDelta(t, 175, n, 75)
		found += n
		k.advance(5 * time.Minute)
	}
	require.Equal(t, 700, found)
}

// A clock that fails with one schedule does not keep the others from being settled.
func TestOneThatCannotBeSettled(t *testing.T) {
	t.Parallel()
	k := newKeep(t)
	bad, good := k.written(nil), k.written(nil)
	keeper := k.keeper()
	refused := &refusing{Clock: k.clock, put: map[string]error{bad.ID: clock.ErrThrottled}}
	keeper.Clock = refused
	_, err := keeper.Reconcile(t.Context())
	require.ErrorIs(t, err, clock.ErrThrottled)
	k.notOnClock(good.ID) // a clock that is busy is left alone
	refused.put[bad.ID] = errors.New("the clock does not like it")
	_, err = keeper.Reconcile(t.Context())
	require.ErrorIs(t, err, refused.put[bad.ID])
	k.onClock(good.ID)
	k.notOnClock(bad.ID)
	got, err := schedule.Get(t.Context(), k.db.App.In(k.TenantID), bad.ID)
	require.NoError(t, err)
	require.False(t, got.Settled)
	k.reconcile()
	k.onClock(bad.ID)
	got, err = schedule.Get(t.Context(), k.db.App.In(k.TenantID), bad.ID)
	require.NoError(t, err)
	require.True(t, got.Settled)
}

// refusing is a clock that refuses to put those, or to list what it has.
type refusing struct {
	clock.Clock
	put  map[string]error
	list error
}

func (r *refusing) List(ctx context.Context, token *string) (page.Page[clock.Entry], error) {
	if r.list != nil {
		return page.Page[clock.Entry]{}, r.list
	}
	return r.Clock.List(ctx, token)
}

// A schedule whose last occurrence is over has drifted in nothing, whether the clock still has it or not.
func TestWhatIsOverHasNotDrifted(t *testing.T) {
	t.Parallel()
	k := newKeep(t)
	s := k.make(object{"expression": "at(" + k.now().UTC().Add(time.Hour).Format("2006-01-02T15:04:05") + ")"})
	k.advance(2 * time.Hour)
	require.Empty(t, k.reconcile().Found)
	require.NoError(t, k.clock.Delete(t.Context(), s.ID))
	require.Empty(t, k.reconcile().Found)
	require.Empty(t, k.reconcile().Found)
}

// An occurrence that nobody ran is run once, late: the last of those that were missed, however often and by how many it is found.
func TestWhatWasMissedIsRunOnce(t *testing.T) {
	t.Parallel()
	k := newKeep(t)
	once := k.make(object{"missed": "run_once", "expression": "rate(1 hour)"})
	k.make(object{"name": "Skips", "missed": "skip"})
	off := k.make(object{"name": "Off", "missed": "run_once"})
	off = k.update(off.ID, object{"enabled": false})
	require.NoError(t, k.keeper().Settle(t.Context(), k.TenantID, off.ID))
	first := once.NextRuns[0]

	k.mu.Lock()
	k.time = first.Add(14 * time.Minute)
	k.mu.Unlock()
	require.Zero(t, k.reconcile().Late, "somebody may still run it")
	require.Empty(t, k.runs.inputs())

	k.advance(7*time.Hour + 2*time.Minute)
	last := first.Add(7 * time.Hour)
	var wg sync.WaitGroup
	barrier := make(chan struct{})
	for range 4 {
		wg.Go(func() {
			<-barrier
			_, err := k.keeper().Reconcile(t.Context())
			require.NoError(t, err)
		})
	}
	close(barrier)
	wg.Wait()
	input := fmt.Sprintf(`{"tenantId":"%s","scheduleId":"%s","occurrence":"%s"}`, k.TenantID, once.ID, last.Format(time.RFC3339))
	require.Equal(t, []string{input}, k.runs.inputs(), "one run, of the last occurrence")
	require.Contains(t, k.runs.by, schedule.RunName(once.ID, last))
	require.Equal(t, 1, k.reconcile().Late, "it is started again until it has begun, which does nothing")
	require.Len(t, k.runs.inputs(), 1)

	// The run begins: the occurrence is claimed, and no drift check takes it for missed.
	opener := &schedule.Opener{DB: k.db.App}
	begin := schedule.State{RunARN: "arn:late", StartedAt: k.now(), Input: schedule.Data{Execution: schedule.Execution{TenantID: k.TenantID, ScheduleID: once.ID, Occurrence: last.Format(time.RFC3339)}}}
	step, err := opener.Open(t.Context(), begin)
	require.NoError(t, err)
	require.Equal(t, schedule.RunTurn, step.Action)
	require.Zero(t, k.reconcile().Late)
	begin.RunARN = "arn:the clock's own, later still"
	step, err = opener.Open(t.Context(), begin)
	require.NoError(t, err)
	require.Equal(t, schedule.Skip, step.Action)
	runs, err := schedule.Runs(t.Context(), k.db.App.In(k.TenantID), []string{once.ID}, nil, 10)
	require.NoError(t, err)
	require.Len(t, runs[once.ID], 1)
	require.Equal(t, schedule.LateRun, runs[once.ID][0].Trigger)
	require.Equal(t, last.UTC(), runs[once.ID][0].Occurrence.UTC())
}

// A run that failed before it came to the claim has used its name up: another one is started, and not more than one an hour.
func TestWhatWasMissedIsRunAlsoWhenItsRunHasFailed(t *testing.T) {
	t.Parallel()
	k := newKeep(t)
	s := k.make(object{"missed": "run_once", "expression": "rate(1 day)"})
	k.advance(time.Hour)
	require.Equal(t, 1, k.reconcile().Late)
	k.advance(10 * time.Minute)
	require.Zero(t, k.reconcile().Late, "it goes on")
	require.Len(t, k.runs.by, 1)
	k.runs.fails()
	require.Equal(t, 1, k.reconcile().Late)
	require.Len(t, k.runs.by, 2)
	for name, input := range k.runs.by {
		require.NoError(t, workflow.CheckName(name))
		require.Contains(t, name, schedule.RunName(s.ID, s.NextRuns[0].Time))
		require.Contains(t, input, s.NextRuns[0].UTC().Format(time.RFC3339))
	}
	k.runs.fails()
	require.Zero(t, k.reconcile().Late)
	k.advance(time.Hour)
	require.Equal(t, 1, k.reconcile().Late)
	require.Len(t, k.runs.by, 3)
}

// What was missed because the clock is out of reach is started while it is, and nobody says that nothing has drifted.
func TestTheClockIsAway(t *testing.T) {
	k := newKeep(t)
	k.make(object{"missed": "run_once", "expression": "rate(1 day)"})
	k.advance(time.Hour)
	sink := &figures{last: map[string]float64{}}
	metric.SetDefault(sink)
	defer metric.SetDefault(nil)
	keeper := k.keeper()
	keeper.Clock = &refusing{Clock: k.clock, list: clock.ErrThrottled}
	report, err := keeper.Reconcile(t.Context())
	require.ErrorIs(t, err, clock.ErrThrottled)
	require.Equal(t, 1, report.Late)
	require.Len(t, k.runs.by, 1)
	require.Equal(t, map[string]float64{"schedule.late": 1}, sink.last)
}

// A clock may tell an occurrence by other seconds than the database: EventBridge Scheduler promises the minute.
func TestAnOccurrenceOfOtherSecondsIsTheSame(t *testing.T) {
	t.Parallel()
	k := newKeep(t)
	s := k.make(object{"missed": "run_once", "expression": "rate(1 day)"})
	k.change(`update schedules set last_occurrence = $1`, s.NextRuns[0].Add(-55*time.Second))
	k.advance(time.Hour)
	require.Zero(t, k.reconcile().Late)
	k.advance(24 * time.Hour)
	require.Equal(t, 1, k.reconcile().Late)
}

// What was due before a schedule began, or began anew, is nobody's.
func TestNothingIsMissedFromBeforeAChange(t *testing.T) {
	t.Parallel()
	k := newKeep(t)
	day := time.Now().UTC().AddDate(0, 0, -2).Format(time.RFC3339)
	s := k.make(object{"missed": "run_once", "expression": "rate(1 minute)", "startAt": day})
	require.Zero(t, k.reconcile().Late, "two days of it are past, and none was missed")
	k.advance(time.Hour)
	require.Equal(t, 1, k.reconcile().Late)
	k.update(s.ID, object{"title": "Another"})
	require.Equal(t, 1, k.reconcile().Late, "it was no change of when it runs")
	k.update(s.ID, object{"enabled": false})
	require.Zero(t, k.reconcile().Late)
}

// Runs that a person asked for and that nobody started are started; those that the engine never begins with have failed.
func TestRunsThatWereAskedForAreStarted(t *testing.T) {
	t.Parallel()
	k := newKeep(t)
	s := k.make(nil)
	var run schedule.Run
	require.NoError(t, k.tx(func(tx pgx.Tx) (err error) {
		run, err = schedule.RunNow(t.Context(), tx, k.TenantID, s.ID)
		return err
	}))
	k.reconcile()
	require.Empty(t, k.runs.inputs(), "whoever asked is starting it at this moment")
	k.change(`update executions set started_at = now() - interval '5 minutes'`)
	k.runs.fail = errors.New("the engine is down")
	_, err := k.keeper().Reconcile(t.Context())
	require.ErrorIs(t, err, k.runs.fail)
	k.runs.fail = nil
	k.reconcile()
	k.reconcile()
	require.Equal(t, map[string]string{run.ID: fmt.Sprintf(`{"tenantId":"%s","scheduleId":"%s","executionId":"%s"}`, k.TenantID, s.ID, run.ID)}, k.runs.by)
	k.change(`update executions set started_at = now() - interval '2 hours'`)
	k.reconcile()
	run, err = schedule.GetRun(t.Context(), k.db.App.In(k.TenantID), run.ID)
	require.NoError(t, err)
	require.Equal(t, schedule.Failed, run.Status)
	require.Equal(t, "the run was not begun within an hour", *run.Error)
	require.True(t, strings.HasPrefix(*run.ErrorType, "Internal"))
}
