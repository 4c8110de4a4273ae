package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/workflow"
)

// A thousand runs that are due at once are each made once, though two engines take them from one database.
func TestThousandRunsAndTwoEngines(t *testing.T) {
	const runs = 1000
	w := newWorld(t)
	var mu sync.Mutex
	calls := map[string]int{}
	count := func(c *Config) {
		c.Functions = func(_ context.Context, function string, payload []byte) ([]byte, error) {
			mu.Lock()
			defer mu.Unlock()
			calls[function+string(payload)]++
			return payload, nil
		}
	}
	a, b := w.open(count), w.open(count)
	machine := w.put(a, `"A": `+task("one", `"Next": "B"`)+`, "B": {"Type": "Parallel", "OutputPath": "$[0]", "Next": "D", "Branches": [
		{"StartAt": "B1", "States": {"B1": `+task("two", `"End": true`)+`}}, {"StartAt": "B2", "States": {"B2": {"Type": "Pass", "End": true}}}]}, "D": `+task("three", `"End": true`))
	names := make([]string, runs)
	var starters sync.WaitGroup
	for i := range runs {
		starters.Go(func() {
			run, err := a.Start(t.Context(), machine, fmt.Sprint("run-", i), json.RawMessage(fmt.Sprint(i)))
			require.NoError(t, err)
			names[i] = run
		})
	}
	starters.Wait()
	w.run(a)
	w.run(b)
	for i, run := range names {
		require.Equal(t, fmt.Sprint(i), w.succeeds(b, run))
		require.Len(t, w.told(a, run), 10)
	}
	require.Len(t, calls, 3*runs)
	for call, n := range calls {
		require.Equal(t, 1, n, call)
	}
	require.Zero(t, w.count(`branches`))
}

// Who stops a run cuts off what is being called in its branches, and what waits.
func TestStopInAParallel(t *testing.T) {
	w := newWorld(t)
	e := w.open()
	w.run(e)
	run := w.start(e, w.put(e, `"A": {"Type": "Parallel", "End": true, "Branches": [
		{"StartAt": "B", "States": {"B": `+task("b", `"Next": "B2"`)+`, "B2": `+task("never", `"End": true`)+`}},
		{"StartAt": "C", "States": {"C": `+token("c", `"End": true`)+`}},
		{"StartAt": "D", "States": {"D": {"Type": "Wait", "Seconds": 60, "End": true}}}]}`), `1`)
	calls := map[string]asked{}
	for range 2 {
		a := w.call()
		calls[a.function] = a
	}
	w.entered(e, run, "D")
	calls["c"].answer <- answer{text: `{}`}
	require.NoError(t, e.Stop(t.Context(), run, "Enough", "of it"))
	r := w.end(e, run)
	require.Equal(t, []string{"ABORTED", "Enough", "of it"}, []string{string(r.Status), r.Error, r.Cause})
	require.ErrorIs(t, e.Succeed(t.Context(), calls["c"].payload["token"].(string), json.RawMessage(`1`)), workflow.ErrTaskOver)
	calls["b"].answer <- answer{text: `2`}
	w.pass(time.Hour, e)
	w.quiet()
	require.ElementsMatch(t, []string{"A entered", "B entered", "C entered", "D entered"}, w.told(e, run))
	require.Empty(t, w.calls)
	require.Zero(t, w.count(`branches`))
}

// When the engine stops, functions are told; what they still answer is kept, and what gives up is called again with the same token.
func TestRunStops(t *testing.T) {
	w := newWorld(t)
	e := w.open(func(c *Config) {
		c.Functions = func(ctx context.Context, function string, payload []byte) ([]byte, error) {
			text, err := w.ask(context.WithoutCancel(ctx), function, payload)
			if err == nil && ctx.Err() != nil && string(text) == `"gives up"` {
				return nil, ctx.Err()
			}
			return text, err
		}
	})
	machine := w.put(e, `"A": `+token("a", `"Next": "B"`)+`, "B": `+task("b", `"End": true`))
	run := w.start(e, machine, `1`)
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- e.Run(ctx) }()
	first := w.call()
	cancel()
	first.answer <- answer{text: `"gives up"`}
	require.ErrorIs(t, <-over, context.Canceled)
	require.Zero(t, w.count(`branches where holder is not null`))

	ctx, cancel = context.WithCancel(t.Context())
	go func() { over <- e.Run(ctx) }()
	again := w.call()
	require.Equal(t, first.payload["token"], again.payload["token"])
	again.answer <- answer{text: `{}`}
	require.NoError(t, e.Succeed(t.Context(), first.payload["token"].(string), json.RawMessage(`"answered"`)))
	b := w.call()
	cancel()
	b.answer <- answer{text: `"done"`}
	require.ErrorIs(t, <-over, context.Canceled)
	require.Equal(t, `"done"`, w.succeeds(e, run), "nobody runs, but it was answered")
	require.Empty(t, w.calls)
}

// A call that was cut short has all of its time again: what the engine was away for is not the function's.
func TestACallThatIsMadeAgainHasItsTime(t *testing.T) {
	w := newWorld(t)
	e := w.open()
	run := w.start(e, w.put(e, `"A": `+task("a", `"TimeoutSeconds": 60, "Next": "B"`)+`, "B": `+token("b", `"TimeoutSeconds": 60, "HeartbeatSeconds": 30, "End": true`)), `1`)
	stop := w.run(e)
	w.call()
	stop()
	w.hand.pass(time.Hour)
	stop = w.run(e)
	w.call().answer <- answer{text: `2`}
	w.call()
	stop()
	w.hand.pass(time.Hour)
	w.run(e)
	b := w.call()
	b.answer <- answer{text: `{}`}
	require.NoError(t, e.Heartbeat(t.Context(), b.payload["token"].(string)))
	require.NoError(t, e.Succeed(t.Context(), b.payload["token"].(string), json.RawMessage(`"in time"`)))
	require.Equal(t, `"in time"`, w.succeeds(e, run))
}

// The first answer counts, also while the function that handed out the token still runs.
func TestAnswersWhileItIsCalled(t *testing.T) {
	w := newWorld(t)
	e := w.open()
	w.run(e)
	run := w.start(e, w.put(e, `"A": `+token("a", `"End": true`)), `1`)
	a := w.call()
	require.NoError(t, e.Succeed(t.Context(), a.payload["token"].(string), json.RawMessage(`"first"`)))
	require.Equal(t, `"first"`, w.succeeds(e, run))
	a.answer <- answer{err: errors.New("too late")}
	w.quiet()
	require.Equal(t, []string{"A entered", "A exited"}, w.told(e, run))
}

// A token is this engine's, and one attempt's.
func TestTokens(t *testing.T) {
	w := newWorld(t)
	e, other := w.open(), newWorld(t).open()
	w.run(e)
	run := w.start(e, w.put(e, `"A": `+token("a", `"End": true`)), `1`)
	a := w.call()
	a.answer <- answer{text: `{}`}
	given := a.payload["token"].(string)
	for _, forged := range []string{other.token(1, 1, 1), given[:len(given)-2], given + "AA", strings.ToLower(given)} {
		require.ErrorIs(t, e.Succeed(t.Context(), forged, json.RawMessage(`1`)), workflow.ErrNoTask, forged)
	}
	require.ErrorIs(t, e.Succeed(t.Context(), e.token(1, 1, 2), json.RawMessage(`1`)), workflow.ErrTaskOver, "of an attempt that is not")
	require.NoError(t, e.Succeed(t.Context(), given, json.RawMessage(`1`)))
	w.succeeds(e, run)
}

// What a heartbeat holds up, and what its absence ends.
func TestHeartbeats(t *testing.T) {
	w := newWorld(t)
	e := w.open()
	w.run(e)
	run := w.start(e, w.put(e, `"A": `+token("a", `"HeartbeatSeconds": 60, "TimeoutSeconds": 3600, "End": true`)), `1`)
	a := w.call()
	a.answer <- answer{text: `{}`}
	w.quiet()
	given := a.payload["token"].(string)
	for range 10 {
		w.pass(59*time.Second, e)
		require.NoError(t, e.Heartbeat(t.Context(), given))
	}
	w.pass(60*time.Second, e)
	r := w.end(e, run)
	require.Equal(t, []string{"FAILED", "States.HeartbeatTimeout"}, []string{string(r.Status), r.Error})
	require.ErrorIs(t, e.Heartbeat(t.Context(), given), workflow.ErrTaskOver)

	run = w.start(e, w.put(e, `"A": `+token("a", `"TimeoutSeconds": 100, "End": true`)), `1`)
	a = w.call()
	a.answer <- answer{text: `{}`}
	w.quiet()
	given = a.payload["token"].(string)
	w.pass(99*time.Second, e)
	require.NoError(t, e.Heartbeat(t.Context(), given))
	w.hand.pass(time.Second) // it is over, though nobody has noticed yet
	require.ErrorIs(t, e.Succeed(t.Context(), given, json.RawMessage(`1`)), workflow.ErrTaskOver)
	e.Look()
	require.Equal(t, "States.Timeout", w.end(e, run).Error)
}

// Nobody was there when it was due: the next engine goes on.
func TestLate(t *testing.T) {
	w := newWorld(t)
	e := w.open()
	stop := w.run(e)
	waits := w.start(e, w.put(e, `"A": {"Type": "Wait", "Seconds": 60, "End": true}`), `1`)
	machine := ident.New()
	require.NoError(t, e.Put(t.Context(), machine, `{"TimeoutSeconds": 90, "StartAt": "A", "States": {"A": {"Type": "Wait", "Seconds": 120, "End": true}}}`))
	timesOut := w.start(e, machine, `1`)
	w.entered(e, waits, "A")
	w.entered(e, timesOut, "A")
	stop()
	w.pass(24 * time.Hour)
	next := w.open()
	w.run(next)
	require.Equal(t, `1`, w.succeeds(next, waits))
	require.Equal(t, workflow.TimedOut, w.end(next, timesOut).Status)
}

// Connections that are thrown out are made again, and no run is left behind.
func TestLostConnections(t *testing.T) {
	w := newWorld(t)
	e := w.open(func(c *Config) { c.Functions = echo })
	w.run(e)
	machine := w.put(e, mapped)
	var runs []string
	for range 20 {
		for range 10 {
			if run, err := e.Start(t.Context(), machine, ident.New(), json.RawMessage(`[1, 2]`)); err == nil {
				runs = append(runs, run)
			}
		}
		_, err := w.super.Exec(t.Context(), `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'agentplatform workflow'`)
		require.NoError(t, err)
	}
	require.NotEmpty(t, runs)
	for _, run := range runs {
		require.Eventually(t, func() bool {
			r, err := e.Describe(t.Context(), run)
			return err == nil && r.Status == workflow.Succeeded
		}, minute, time.Millisecond)
		require.Len(t, w.told(e, run), 12)
	}
}

var mapped = `"A": ` + task("a", `"Next": "B"`) + `, "B": {"Type": "Map", "ItemProcessor": {"StartAt": "C", "States": {"C": ` + task("c", `"End": true`) +
	`}}, "Next": "D"}, "D": ` + task("d", `"Next": "E"`) + `, "E": {"Type": "Succeed"}`
