package workflow

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/workflow"
)

// every has each type of state, each way through it, and waits that are over at once or when a test's time has come.
var every = `"A": {"Type": "Pass", "Result": 1, "ResultPath": "$.a", "Next": "B"},
	"B": {"Type": "Wait", "Seconds": 60, "Next": "C"},
	"C": {"Type": "Choice", "Choices": [{"Variable": "$.a", "NumericEquals": 1, "Next": "D"}]},
	"D": ` + task("plain", `"ResultPath": "$.d", "Next": "E"`) + `,
	"E": ` + token("token", `"ResultPath": "$.e", "HeartbeatSeconds": 600, "Retry": [{"ErrorEquals": ["Busy"], "IntervalSeconds": 30, "MaxAttempts": 1}], "Next": "F"`) + `,
	"F": {"Type": "Parallel", "ResultPath": "$.f", "Branches": [
		{"StartAt": "F1", "States": {"F1": ` + task("plain", `"End": true`) + `}},
		{"StartAt": "F2", "States": {"F2": {"Type": "Wait", "Seconds": 60, "Next": "F3"}, "F3": {"Type": "Succeed"}}}], "Next": "G"},
	"G": {"Type": "Parallel", "Branches": [{"StartAt": "G1", "States": {"G1": {"Type": "Fail", "Error": "Sorry"}}}, {"StartAt": "G2", "States": {"G2": ` + token("never", `"End": true`) + `}}],
		"Catch": [{"ErrorEquals": ["Sorry"], "ResultPath": "$.g", "Next": "H"}], "End": true},
	"H": {"Type": "Map", "ItemsPath": "$.items", "MaxConcurrency": 2, "ItemProcessor": {"StartAt": "H1", "States": {"H1": ` + task("plain", `"End": true`) + `}}, "ResultPath": "$.h", "Next": "I"},
	"I": {"Type": "Pass", "Parameters": {"a.$": "$.a", "d.$": "$.d.n", "e.$": "$.e", "f.$": "$.f[*].n", "g.$": "$.g.Error", "h.$": "$.h"}, "Next": "J"},
	"J": {"Type": "Succeed"}`

const (
	everyInput  = `{"n": 7, "items": [1, 2, 3]}`
	everyOutput = `{"a": 1, "d": 7, "e": "yes", "f": [7, 7], "g": "Sorry", "h": [1, 2, 3]}`
)

// everyTold is its history, in some order; G2 may not have come about.
var everyTold = []string{"A entered", "A exited", "B entered", "B exited", "C entered", "C exited", "D entered", "D exited",
	"E entered", "E failed Busy", "E retried", "E exited", "F entered", "F1 entered", "F1 exited", "F2 entered", "F2 exited", "F3 entered", "F3 exited", "F exited",
	"G entered", "G1 entered", "G1 failed Sorry", "G failed Sorry", "G exited", "H entered", "H1 entered", "H1 exited", "H1 entered", "H1 exited", "H1 entered", "H1 exited", "H exited",
	"I entered", "I exited", "J entered", "J exited"}

// answering are functions that answer every's tasks by the engine of the moment: once with Busy, then with yes.
type answering struct {
	mu     sync.Mutex
	engine *Engine
	tokens map[string]int // that were handed out, how often
}

func (a *answering) call(ctx context.Context, function string, payload []byte) ([]byte, error) {
	if function == "plain" {
		return payload, nil
	}
	var said struct {
		Token string
		Try   int
	}
	if err := json.Unmarshal(payload, &said); err != nil || function == "never" {
		return nil, err
	}
	a.mu.Lock()
	if a.tokens != nil {
		a.tokens[said.Token]++
	}
	e := a.engine
	a.mu.Unlock()
	ctx = context.WithoutCancel(ctx)
	if said.Try == 0 {
		_ = e.Fail(ctx, said.Token, "Busy", "") // it may have been answered before the kill
	} else {
		_ = e.Succeed(ctx, said.Token, json.RawMessage(`"yes"`))
	}
	return []byte(`{}`), nil
}

// finishes moves the time on until the run has ended as it must.
func (w *world) finishes(e *Engine, run string) {
	w.Helper()
	require.Eventually(w, func() bool {
		w.pass(10*time.Second, e)
		r, err := e.Describe(w.Context(), run)
		require.NoError(w, err)
		return r.Status != workflow.Running
	}, minute, 2*time.Millisecond)
	require.JSONEq(w, everyOutput, w.succeeds(e, run))
	told := slices.DeleteFunc(w.told(e, run), func(line string) bool { return line == "G2 entered" })
	require.ElementsMatch(w, everyTold, told)
	require.Zero(w, w.count(`branches`))
}

// dies is an engine's end at a point, as if its process were killed: whoever comes to a point from then on stands still.
type dies struct {
	at     func(n int, point string) bool // the nth point that it comes to
	mu     sync.Mutex
	points []string
	gone   bool
	dead   chan struct{} // it is
	buried chan struct{} // the test is over
}

func (d *dies) signal(point string) {
	d.mu.Lock()
	d.points = append(d.points, point)
	if !d.gone && d.at(len(d.points), point) {
		d.gone = true
		close(d.dead)
	}
	stands := d.gone
	d.mu.Unlock()
	if stands {
		<-d.buried
	}
}

// killed has an engine die, and another go on. In the end the dead one rises, and changes nothing. It returns the points that the first came to, and
// whether it died.
func (w *world) killed(at func(n int, point string) bool) (points []string, died bool) {
	w.Helper()
	d := &dies{at: at, dead: make(chan struct{}), buried: make(chan struct{})}
	functions := &answering{tokens: map[string]int{}}
	first := w.open(func(c *Config) { c.Functions, c.Signal = functions.call, d.signal })
	defer first.Close()
	functions.engine = first
	run := w.start(first, w.put(first, every), everyInput)
	stop := w.run(first)
	for alive := true; alive && !died; {
		w.pass(10*time.Second, first)
		select {
		case <-d.dead:
			died = true
		case <-time.After(2 * time.Millisecond):
			r, err := first.Describe(w.Context(), run)
			require.NoError(w, err)
			alive = r.Status == workflow.Running
		}
	}
	if !died {
		stop()
		w.finishes(first, run)
		return d.points, false
	}
	require.Eventually(w, func() bool { // its connection goes with the process
		_, err := w.super.Exec(w.Context(), `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and query = 'listen local_workflow'`)
		require.NoError(w, err)
		locks := 0
		require.NoError(w, w.super.QueryRow(w.Context(), `select count(*) from pg_locks where locktype = 'advisory'`).Scan(&locks))
		return locks == 0
	}, minute, time.Millisecond)
	second := w.open(func(c *Config) { c.Functions = functions.call })
	defer second.Close()
	functions.mu.Lock()
	functions.engine = second
	functions.mu.Unlock()
	stopSecond := w.run(second)
	w.finishes(second, run)
	history := w.told(second, run)
	close(d.buried)
	stop()
	stopSecond()
	require.Equal(w, history, w.told(second, run))
	require.LessOrEqual(w, len(functions.tokens), 2, "one token an attempt, whoever makes it")
	return d.points, true
}

// An engine dies the first time that it comes to each point, and the run goes on.
func TestKilledAtEachPoint(t *testing.T) {
	w := newWorld(t)
	points, _ := w.killed(func(int, string) bool { return false })
	slices.Sort(points)
	points = slices.Compact(points)
	for _, point := range []string{"claimed", "Wait wait before", "Wait wait after", "Task call before", "Task call after", "Task called", "Task pause before", "Parallel children after",
		"Map children before", "Task over before", "Fail failed after", "Succeed over before", "Succeed over after"} {
		require.Contains(t, points, point)
	}
	for _, point := range points {
		w.killed(func(_ int, at string) bool { return at == point })
	}
}

// What a real kill of a real process leaves is gone on with by the next one.
func TestKilledProcess(t *testing.T) {
	const where = "LOCAL_WORKFLOW_TEST_DIES_AT"
	if url := os.Getenv("LOCAL_WORKFLOW_TEST_URL"); url != "" {
		now, err := time.Parse(time.RFC3339, os.Getenv("LOCAL_WORKFLOW_TEST_NOW"))
		require.NoError(t, err)
		e, err := Open(t.Context(), Config{URL: url, Prefix: "test-", Now: func() time.Time { return now }, Functions: echo, Signal: func(point string) {
			if point == os.Getenv(where) {
				os.Exit(3)
			}
		}})
		require.NoError(t, err)
		_ = e.Run(t.Context())
	}
	w := newWorld(t)
	for _, point := range []string{"Wait wait after", "Task call after", "Task called", "Parallel children after", "Succeed over before"} {
		e := w.open(func(c *Config) { c.Functions = echo })
		run := w.start(e, w.put(e, `"A": `+task("plain", `"Next": "B"`)+`, "B": {"Type": "Parallel", "Branches": [{"StartAt": "C", "States": {"C": `+task("plain", `"End": true`)+`}}], "Next": "D"},
			"D": {"Type": "Wait", "Seconds": `+fmt.Sprint(map[bool]int{true: 60}[point == "Wait wait after"])+`, "Next": "E"}, "E": {"Type": "Succeed"}`), `5`)
		program := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledProcess$") //nolint:gosec // this test
		program.Env = append(os.Environ(), where+"="+point, "LOCAL_WORKFLOW_TEST_URL="+w.db.SuperURL, "LOCAL_WORKFLOW_TEST_NOW="+w.hand.Now().Format(time.RFC3339))
		output, err := program.CombinedOutput()
		exit := new(exec.ExitError)
		require.ErrorAs(t, err, &exit, "%s", output)
		require.Equal(t, 3, exit.ExitCode(), "%s: %s", point, output)
		w.pass(time.Hour)
		stop := w.run(e)
		require.Equal(t, `[5]`, w.succeeds(e, run), point)
		stop()
	}
}
