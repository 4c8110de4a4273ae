package workflow

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/workflow"
)

const minute = time.Minute

// hand is a time that tests move on.
type hand struct {
	mu  sync.Mutex
	now time.Time
}

func (h *hand) Now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *hand) pass(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
}

// asked is a function's call.
type asked struct {
	function string
	payload  map[string]any
	answer   chan<- answer
	ctx      context.Context
}

type answer struct {
	text string
	err  error
}

// world is a database, a time, and engines on them.
type world struct {
	testing.TB
	db    *pgtest.DB
	super *pgx.Conn
	hand  *hand
	calls chan asked
}

var began = time.Date(2027, 3, 13, 12, 0, 0, 0, time.UTC)

func newWorld(t testing.TB) *world {
	db := pgtest.New(t)
	return &world{TB: t, db: db, super: db.Superuser(t), hand: &hand{now: began}, calls: make(chan asked, 10_000)}
}

// echo are functions that answer what they are asked, at once.
func echo(_ context.Context, _ string, payload []byte) ([]byte, error) { return payload, nil }

// ask are functions that the test answers.
func (w *world) ask(ctx context.Context, function string, payload []byte) ([]byte, error) {
	answers := make(chan answer, 1)
	a := asked{function: function, answer: answers, ctx: ctx}
	_ = json.Unmarshal(payload, &a.payload)
	w.calls <- a
	select {
	case got := <-answers:
		return []byte(got.text), got.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (w *world) call() asked {
	w.Helper()
	select {
	case a := <-w.calls:
		return a
	case <-time.After(minute):
		w.Fatal("no function is called")
		return asked{}
	}
}

func (w *world) open(change ...func(*Config)) *Engine {
	w.Helper()
	c := Config{URL: w.db.SuperURL, Functions: w.ask, Prefix: "test-", Now: w.hand.Now}
	for _, f := range change {
		f(&c)
	}
	e, err := Open(w.Context(), c)
	require.NoError(w, err)
	w.Cleanup(e.Close)
	return e
}

// run runs an engine until stop, or the test's end.
func (w *world) run(e *Engine) (stop func()) {
	ctx, cancel := context.WithCancel(w.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = e.Run(ctx)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-over
	})
	w.Cleanup(stop)
	return stop
}

// put makes a machine of those states, as contract tests write them; the first is A.
func (w *world) put(e *Engine, states string) (machine string) {
	w.Helper()
	machine = ident.New()
	require.NoError(w, e.Put(w.Context(), machine, define(states)))
	return machine
}

func define(states string) string {
	return fmt.Sprintf(`{"StartAt": "A", "States": {%s}}`, states)
}

func (w *world) start(e *Engine, machine, input string) (run string) {
	w.Helper()
	run, err := e.Start(w.Context(), machine, ident.New(), json.RawMessage(input))
	require.NoError(w, err)
	return run
}

func (w *world) end(e *Engine, run string) (r workflow.Run) {
	w.Helper()
	require.Eventually(w, func() bool {
		var err error
		r, err = e.Describe(w.Context(), run)
		require.NoError(w, err)
		return r.Status != workflow.Running
	}, minute, time.Millisecond)
	return r
}

// succeeds waits for a run's output.
func (w *world) succeeds(e *Engine, run string) string {
	w.Helper()
	r := w.end(e, run)
	require.Equal(w, workflow.Succeeded, r.Status, "%s: %s", r.Error, r.Cause)
	return string(r.Output)
}

// told is a run's history in short.
func (w *world) told(e *Engine, run string) (lines []string) {
	w.Helper()
	steps, err := e.History(w.Context(), run, 0, MaxSteps)
	require.NoError(w, err)
	for i, s := range steps {
		require.Equal(w, i+1, s.Seq)
		require.Equal(w, s.State, steps[s.Visit-1].State)
		require.Equal(w, workflow.StateEntered, steps[s.Visit-1].Kind)
		line := fmt.Sprintf("%s %s", s.State, s.Kind)
		if s.Error != "" {
			line += " " + s.Error
		}
		lines = append(lines, line)
	}
	return lines
}

// entered waits until a run has entered a state.
func (w *world) entered(e *Engine, run, state string) {
	w.Helper()
	require.Eventually(w, func() bool { return strings.Contains(strings.Join(w.told(e, run), "\n"), state+" entered") }, minute, time.Millisecond)
}

func (w *world) count(from string, args ...any) (n int) {
	w.Helper()
	require.NoError(w, w.super.QueryRow(w.Context(), `select count(*) from local_workflow.`+from, args...).Scan(&n))
	return n
}

// quiet waits until no branch is worked on, or due.
func (w *world) quiet() {
	w.Helper()
	require.Eventually(w, func() bool { return w.count(`branches where holder is not null or wake <= $1`, w.hand.Now()) == 0 }, minute, time.Millisecond)
}

// pass moves the time on and tells engines.
func (w *world) pass(d time.Duration, engines ...*Engine) {
	w.hand.pass(d)
	for _, e := range engines {
		e.Look()
	}
}

// task is a state that calls a function; token one that hands out its token and waits for it.
func task(function, more string) string {
	return `{"Type": "Task", "Resource": "arn:aws:lambda:local:000000000000:function:test-` + function + `", ` + more + `}`
}

func token(function, more string) string {
	return `{"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken", "Parameters": {"FunctionName": "test-` + function +
		`", "Payload": {"token.$": "$$.Task.Token", "input.$": "$", "try.$": "$$.State.RetryCount"}}, ` + more + `}`
}
