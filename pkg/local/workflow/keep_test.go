package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/workflow"
)

// A run keeps the definition that it began with; those that start later have the one that was deployed last.
func TestDeploy(t *testing.T) {
	w := newWorld(t)
	e := w.open()
	w.run(e)
	definition := func(result int) string {
		return define(`"A": {"Type": "Wait", "Seconds": 60, "Next": "B"}, "B": {"Type": "Pass", "Result": ` + fmt.Sprint(result) + `, "End": true}`)
	}
	var runs []string
	for i := range 3 {
		for range 2 {
			require.NoError(t, e.Deploy(t.Context(), "auto-thread", definition(i)))
		}
		runs = append(runs, w.start(e, "auto-thread", `{}`))
	}
	require.Equal(t, 3, w.count(`definitions`))
	w.quiet()
	w.pass(time.Minute, e)
	for i, run := range runs {
		require.Equal(t, fmt.Sprint(i), w.succeeds(e, run))
	}
	require.ErrorIs(t, e.Deploy(t.Context(), "auto-thread", `{}`), workflow.ErrDefinition)
	require.ErrorIs(t, e.Deploy(t.Context(), "auto thread", definition(1)), workflow.ErrName)
}

// Runs of a machine that was deleted end at their next state, also when they are between two.
func TestDelete(t *testing.T) {
	w := newWorld(t)
	e := w.open()
	w.run(e)
	machine := w.put(e, `"A": `+task("a", `"Next": "B"`)+`, "B": {"Type": "Pass", "End": true}`)
	run := w.start(e, machine, `1`)
	a := w.call()
	require.NoError(t, e.Delete(t.Context(), machine))
	a.answer <- answer{text: `2`}
	require.Equal(t, workflow.Aborted, w.end(e, run).Status)
	require.Equal(t, []string{"A entered"}, w.told(e, run))
	require.ErrorIs(t, e.Put(t.Context(), machine, define(`"A": {"Type": "Succeed"}`)), workflow.ErrMachineExists, "its name is not for use again")
}

// Runs are there for 90 days after their end, and definitions as long as somebody needs them.
func TestPrune(t *testing.T) {
	w := newWorld(t)
	e := w.open(func(c *Config) { c.Functions = echo })
	w.run(e)
	pass, hold := define(`"A": {"Type": "Pass", "End": true}`), w.put(e, `"A": {"Type": "Wait", "Seconds": 31536000, "End": true}`)
	machine, gone := ident.New(), ident.New()
	require.NoError(t, e.Put(t.Context(), machine, pass))
	require.NoError(t, e.Put(t.Context(), gone, pass))
	old, running := w.start(e, gone, `1`), w.start(e, hold, `1`)
	w.succeeds(e, old)
	require.NoError(t, e.Delete(t.Context(), gone))
	w.hand.pass(24 * time.Hour)
	name := ident.New()
	recent, err := e.Start(t.Context(), machine, name, json.RawMessage(`2`))
	require.NoError(t, err)
	w.succeeds(e, recent)
	w.quiet()

	r := &run{Engine: e}
	require.NoError(t, r.prune(t.Context()))
	require.Equal(t, []int{3, 3}, []int{w.count(`runs`), w.count(`definitions`)})
	w.hand.pass(90*24*time.Hour - time.Second)
	require.NoError(t, r.prune(t.Context()))
	_, err = e.Describe(t.Context(), old)
	require.ErrorIs(t, err, workflow.ErrNoRun)
	require.Equal(t, []int{2, 2}, []int{w.count(`runs`), w.count(`definitions`)})
	require.Zero(t, w.count(`steps s where not exists (select from local_workflow.runs where id = s.run)`))
	w.hand.pass(2 * time.Second)
	require.NoError(t, r.prune(t.Context()))
	require.Equal(t, 1, w.count(`runs`), "that is not over")
	again, err := e.Start(t.Context(), machine, name, json.RawMessage(`3`))
	require.NoError(t, err, "its name is free")
	require.Equal(t, recent, again)
	require.Equal(t, `3`, w.succeeds(e, again))
	require.Equal(t, workflow.Running, func() workflow.Status { r, _ := e.Describe(t.Context(), running); return r.Status }())
}

// Every end is told, in whichever way the run ended: once, and again after a failure, or after a process that was killed in the middle.
func TestEnded(t *testing.T) {
	w := newWorld(t)
	type told struct {
		run     workflow.Run
		machine string
	}
	ends := make(chan told, 100)
	var mu sync.Mutex
	fails := map[string]int{}
	e := w.open(func(c *Config) {
		c.Ended = func(_ context.Context, run workflow.Run, machine string) error {
			ends <- told{run, machine}
			mu.Lock()
			defer mu.Unlock()
			if fails[machine]--; fails[machine] >= 0 {
				if fails[machine] == 0 {
					panic("no")
				}
				return errors.New("no")
			}
			return nil
		}
	})
	stop := w.run(e)
	next := func() told {
		t.Helper()
		select {
		case e := <-ends:
			return e
		case <-time.After(minute):
			t.Fatal("no end is told")
			return told{}
		}
	}
	settled := func() {
		t.Helper()
		require.Eventually(t, func() bool { return w.count(`runs where tell is not null`) == 0 }, minute, time.Millisecond)
		require.Empty(t, ends)
	}
	for status, states := range map[workflow.Status]string{workflow.Succeeded: `"A": {"Type": "Pass", "End": true}`, workflow.Failed: `"A": {"Type": "Fail", "Error": "E"}`} {
		machine := w.put(e, states)
		run := w.start(e, machine, `1`)
		got := next()
		require.Equal(t, []any{run, status, machine}, []any{got.run.ID, got.run.Status, got.machine})
		require.Equal(t, w.end(e, run), got.run)
	}
	waits := w.put(e, `"A": {"Type": "Wait", "Seconds": 60, "End": true}`)
	stopped := w.start(e, waits, `1`)
	require.NoError(t, e.Stop(t.Context(), stopped, "Enough", ""))
	require.Equal(t, workflow.Aborted, next().run.Status)
	require.NoError(t, e.Stop(t.Context(), stopped, "Enough", ""))
	settled()

	mu.Lock()
	fails[waits] = 2
	mu.Unlock()
	require.NoError(t, e.Stop(t.Context(), w.start(e, waits, `2`), "", ""))
	next()
	for _, pause := range []time.Duration{time.Second, 2 * time.Second} {
		require.Eventually(t, func() bool { return w.count(`runs where tell = $1`, w.hand.Now().Add(pause)) == 1 }, minute, time.Millisecond)
		w.hand.pass(pause)
		signal(e.ended)
		next()
	}
	settled()
	stop()

	killed := &run{Engine: e}
	require.NoError(t, e.Stop(t.Context(), w.start(e, waits, `3`), "", ""), "while nobody runs")
	all, err := killed.ends(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 1)
	w.hand.pass(tellLimit)
	w.run(e)
	next()
	settled()
}

func TestOpen(t *testing.T) {
	w := newWorld(t)
	var group sync.WaitGroup
	errs := make([]error, 8)
	tokens := make([]string, 8)
	for i := range errs {
		group.Go(func() {
			e, err := Open(t.Context(), Config{URL: w.db.SuperURL})
			if errs[i] = err; err == nil {
				tokens[i] = e.token(1, 2, 3)
				e.Close()
			}
		})
	}
	group.Wait()
	require.NoError(t, errors.Join(errs...), "several at once")
	for _, token := range tokens {
		require.Equal(t, tokens[0], token)
	}
	_, err := w.super.Exec(t.Context(), `insert into local_workflow.version values ($1)`, len(versions)+1)
	require.NoError(t, err)
	_, err = Open(t.Context(), Config{URL: w.db.SuperURL})
	require.ErrorContains(t, err, fmt.Sprintf("the workflow engine's tables: they are of version %d, made by a newer release; this one knows up to %d", len(versions)+1, len(versions)))
	_, err = Open(t.Context(), Config{URL: w.db.AppURL})
	require.ErrorContains(t, err, "the workflow engine's tables: ", "the application's role may not")
}
