package webhook_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/agentplatform/agentplatform/pkg/webhook"
)

// together makes n calls at once and gives their answers.
func (w *world) together(n int, call func(i int) (webhook.Invoked, error)) []webhook.Invoked {
	w.t.Helper()
	answers := make([]webhook.Invoked, n)
	begin := make(chan struct{})
	var g errgroup.Group
	for i := range n {
		g.Go(func() (err error) {
			<-begin
			answers[i], err = call(i)
			return err
		})
	}
	close(begin)
	require.NoError(w.t, g.Wait())
	return answers
}

// oneRun checks that n answers tell of one run, which one of them started.
func oneRun(t testing.TB, answers []webhook.Invoked) (runID string) {
	t.Helper()
	repeated := 0
	for _, a := range answers {
		require.Equal(t, answers[0].RunID, a.RunID)
		require.Equal(t, answers[0].ThreadID, a.ThreadID)
		require.Equal(t, answers[0].CreatedAt, a.CreatedAt)
		if a.Deduplicated {
			repeated++
		}
	}
	require.Equal(t, len(answers)-1, repeated)
	return answers[0].RunID
}

func TestFiftyCallsWithOneKeyMakeOneRun(t *testing.T) {
	w := newWorld(t)
	hook := w.create()
	call := func(int) (webhook.Invoked, error) { return w.invoke(hook.ID, "one", `{"message":"Hello"}`) }
	run := oneRun(t, w.together(50, call))
	require.Equal(t, rows{Runs: 1, Threads: 1, Messages: 1, Keys: 1, Counted: 1}, w.rows())
	w.whole()

	w.exec(`update webhook_keys set created_at = created_at - $1::interval`, day+time.Hour)
	next := oneRun(t, w.together(50, call))
	require.NotEqual(t, run, next, "a key of yesterday counts anew")
	require.Equal(t, rows{Runs: 2, Threads: 2, Messages: 2, Keys: 1, Counted: 2}, w.rows())
}

// An agent's own limit, which the first call reaches, does not turn the others away: they ask for nothing new.
func TestOneKeyAtAnAgentWithALimit(t *testing.T) {
	w := newWorld(t)
	w.exec(`update agents set turns_per_minute = 1`)
	hook := w.create()
	oneRun(t, w.together(20, func(int) (webhook.Invoked, error) { return w.invoke(hook.ID, "one", `{"message":"Hello"}`) }))
	require.Equal(t, rows{Runs: 1, Threads: 1, Messages: 1, Keys: 1, Counted: 1}, w.rows())
}

func TestKeysAreApart(t *testing.T) {
	w := newWorld(t)
	other := w.neighbour("globex")
	hook, sibling, foreign := w.create(), w.create(), other.create()
	runs := map[string]bool{}
	for _, got := range []webhook.Invoked{w.start(hook.ID, "a", `{"message":"1"}`), w.start(hook.ID, "A", `{"message":"1"}`), w.start(sibling.ID, "a", `{"message":"1"}`),
		other.start(foreign.ID, "a", `{"message":"1"}`), w.start(hook.ID, "", `{"message":"1"}`), w.start(hook.ID, "", `{"message":"1"}`)} {
		require.False(t, got.Deduplicated)
		runs[got.RunID] = true
	}
	require.Len(t, runs, 6)
	require.Equal(t, 4, w.rows().Keys)
	first := w.start(hook.ID, "a", `{"message":"another body, another message"}`)
	require.True(t, first.Deduplicated)
	require.Equal(t, "AUTO-1", *first.ThreadID)
	w.whole()
}

// The answer to a repeated call tells how far the run is by now.
func TestRepeatedCallTellsTheRunsStatus(t *testing.T) {
	w := newWorld(t)
	hook := w.create()
	first := w.start(hook.ID, "a", `{"message":"Hello"}`)
	again := w.start(hook.ID, "a", `{"message":"Hello"}`)
	first.Deduplicated = true
	require.Equal(t, first, again)
	w.exec(`update thread_turns set status = 'succeeded', lease_until = null`)
	first.Status = "succeeded"
	require.Equal(t, first, w.start(hook.ID, "a", `{"message":"Hello"}`))
}

func TestKeysAreForgottenAfterADay(t *testing.T) {
	w := newWorld(t)
	hook := w.create()
	first := w.start(hook.ID, "a", `{"message":"Hello"}`)
	age := func(by time.Duration) {
		w.exec(`update webhook_keys set created_at = clock_timestamp() - $1::interval`, by)
	}
	age(day - time.Minute)
	require.Equal(t, first.RunID, w.start(hook.ID, "a", `{"message":"Hello"}`).RunID)
	age(day + time.Second)
	next := w.start(hook.ID, "a", `{"message":"Hello"}`)
	require.NotEqual(t, first.RunID, next.RunID)
	require.False(t, next.Deduplicated)
	require.Equal(t, next.RunID, w.start(hook.ID, "a", `{"message":"Hello"}`).RunID)
	require.Len(t, w.runs(hook.ID), 2)
	w.whole()
}

func TestSweepKeys(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, webhook.SweepKeys(t.Context(), w.db.App))
	for i := range 3 {
		tenant := w
		if i > 0 {
			tenant = w.neighbour(fmt.Sprint("tenant-", i))
		}
		hook := tenant.create()
		for _, key := range []string{"old-1", "old-2", "new"} {
			tenant.start(hook.ID, key, `{"message":"Hello"}`)
		}
	}
	w.exec(`update webhook_keys set created_at = clock_timestamp() - $1::interval where key like 'old%'`, day+time.Second)
	w.exec(`update webhook_keys set created_at = clock_timestamp() - $1::interval where key like 'new%'`, day-time.Minute)
	require.NoError(t, webhook.SweepKeys(t.Context(), w.db.App))
	require.Equal(t, 3, query[int](w, `select count(*) from webhook_keys where key = 'new'`))
	require.Equal(t, rows{Runs: 9, Threads: 9, Messages: 9, Keys: 3, Counted: 9}, w.rows())
	require.NoError(t, webhook.SweepKeys(t.Context(), w.db.App))
	require.Equal(t, 3, w.rows().Keys)

	// More than a transaction of the sweep takes.
	w.exec(`insert into webhook_keys (tenant_id, webhook_id, key, run_id, created_at) select $1, $1, 'old ' || n, $1, clock_timestamp() - interval '2 days' from generate_series(1, 20001) n`, w.TenantID)
	require.NoError(t, webhook.SweepKeys(t.Context(), w.db.App))
	require.Equal(t, 3, w.rows().Keys)
}
