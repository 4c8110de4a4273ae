package routine_test

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

	"github.com/agentplatform/agentplatform/pkg/callback"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/local/workflow"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/routine"
	"github.com/agentplatform/agentplatform/pkg/text"
	engine "github.com/agentplatform/agentplatform/pkg/workflow"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

type object = map[string]any

// world is a tenant, and the engine that its routines run in.
type world struct {
	pgtest.World
	t       *testing.T
	db      *pgtest.DB
	super   *pgx.Conn
	engine  *workflow.Engine
	settler *routine.Settler

	mu       sync.Mutex
	calls    []routine.Call
	called   chan routine.Call
	begin    func(c routine.Call) any // what a task is answered at once; nil, or nil of it: nothing yet
	answered []callback.Task
	ahead    time.Duration // of the engine's time
}

// refusal is what begin answers to fail a task.
type refusal struct{ code, cause string }

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel() // what some wait for passes for all
	db := pgtest.New(t)
	w := &world{World: db.World(t, "acme"), t: t, db: db, super: db.Superuser(t), called: make(chan routine.Call, 1000)}
	e, err := workflow.Open(t.Context(), workflow.Config{URL: db.SuperURL, Functions: w.function, Now: w.now})
	require.NoError(t, err)
	w.engine = e
	w.settler = &routine.Settler{Engine: routine.Engine{DB: db.App, Machines: e, Runs: e, Function: func(name string) string { return name }},
		Answer: func(_ context.Context, task callback.Task) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.answered = append(w.answered, task)
			return nil
		}}
	t.Cleanup(e.Close)
	return w
}

// run has the engine work until the test ends.
func (w *world) run() *world {
	ctx, stop := context.WithCancel(w.t.Context())
	var working sync.WaitGroup
	working.Go(func() { _ = w.engine.Run(ctx) })
	w.t.Cleanup(func() {
		stop()
		working.Wait()
	})
	return w
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.ahead)
}

func (w *world) function(ctx context.Context, function string, payload []byte) ([]byte, error) {
	if function != routine.BeginStep {
		return nil, fmt.Errorf("there is no function %s", function)
	}
	var c routine.Call
	if err := json.Unmarshal(payload, &c); err != nil {
		return nil, err
	}
	w.mu.Lock()
	w.calls = append(w.calls, c)
	begin := w.begin
	w.mu.Unlock()
	if begin != nil {
		w.answer(ctx, c, begin(c))
	}
	w.called <- c
	return []byte(`null`), nil
}

func (w *world) answer(ctx context.Context, c routine.Call, a any) {
	switch a := a.(type) {
	case nil:
	case refusal:
		_ = w.engine.Fail(ctx, c.Token, a.code, a.cause)
	default:
		said, _ := json.Marshal(a)
		_ = w.engine.Succeed(ctx, c.Token, said)
	}
}

// call is the next task that the engine asked for.
func (w *world) call() routine.Call {
	w.t.Helper()
	select {
	case c := <-w.called:
		return c
	case <-time.After(time.Minute):
		require.FailNow(w.t, "no task was begun")
		panic(nil)
	}
}

func (w *world) tx(run func(tx pgx.Tx) error) error {
	return w.db.App.InTenant(w.t.Context(), w.TenantID, run)
}

func (w *world) change(sql string, args ...any) {
	w.t.Helper()
	_, err := w.super.Exec(w.t.Context(), sql, args...)
	require.NoError(w.t, err)
}

func (w *world) text(sql string, args ...any) (s string) {
	w.t.Helper()
	require.NoError(w.t, w.super.QueryRow(w.t.Context(), sql, args...).Scan(&s))
	return s
}

// machine is a definition of these states, the first of which it begins with.
func machine(first, states string) string {
	return fmt.Sprintf(`{"StartAt": %q, "States": {%s}}`, first, states)
}

// task is a task of a verb, which is the end if more does not say where it goes.
func task(verb routine.Verb, parameters, more string) string {
	if !strings.Contains(more, `"Next"`) && !strings.Contains(more, `"End"`) {
		more = strings.TrimPrefix(more+`, "End": true`, ", ")
	}
	if parameters != "" {
		parameters = `"Parameters": ` + parameters + `, `
	}
	return fmt.Sprintf(`{"Type": "Task", "Resource": "platform:%s", %s%s}`, verb, parameters, more)
}

func (w *world) create(name, definition string) (r routine.Routine, err error) {
	err = w.tx(func(tx pgx.Tx) error {
		r, err = routine.Create(w.t.Context(), tx, w.TenantID, w.UserID, fields(name, definition))
		return err
	})
	return r, err
}

func fields(name, definition string) routine.Fields {
	return routine.Fields{Name: text.Patch[string]{Set: true, Value: &name}, Definition: text.Patch[string]{Set: true, Value: &definition}}
}

func (w *world) update(id string, f routine.Fields) (r routine.Routine, err error) {
	err = w.tx(func(tx pgx.Tx) error {
		r, err = routine.Update(w.t.Context(), tx, w.TenantID, w.UserID, id, f)
		return err
	})
	return r, err
}

// redefine makes a new version, and has the engine prepare it.
func (w *world) redefine(id, definition string) routine.Routine {
	w.t.Helper()
	r, err := w.update(id, routine.Fields{Definition: text.Patch[string]{Set: true, Value: &definition}})
	require.NoError(w.t, err)
	require.NoError(w.t, w.settler.Prepare(w.t.Context(), w.TenantID, id, r.CurrentVersion))
	return r
}

// made is a routine of that definition, prepared.
func (w *world) made(definition string) routine.Routine {
	w.t.Helper()
	r, err := w.create("routine "+fmt.Sprint(time.Now().UnixNano()), definition)
	require.NoError(w.t, err)
	require.NoError(w.t, w.settler.Prepare(w.t.Context(), w.TenantID, r.ID, 1))
	return r
}

func (w *world) start(n routine.NewRun) (r routine.Run, err error) {
	if n.StartedBy.Type == "" {
		n.StartedBy = routine.StartedBy{Type: routine.ByUser, ID: w.UserID}
	}
	err = w.tx(func(tx pgx.Tx) error {
		r, err = routine.Start(w.t.Context(), tx, w.TenantID, n)
		return err
	})
	return r, err
}

// started is a run that the engine has begun with.
func (w *world) started(routineID, input string) routine.Run {
	w.t.Helper()
	r, err := w.start(routine.NewRun{RoutineID: routineID, Input: json.RawMessage(input)})
	require.NoError(w.t, err)
	require.Equal(w.t, routine.Starting, r.Status)
	r, err = w.settler.Launch(w.t.Context(), w.TenantID, r.ID)
	require.NoError(w.t, err)
	require.Equal(w.t, routine.Running, r.Status)
	return r
}

func (w *world) get(runID string) routine.Run {
	w.t.Helper()
	r, err := routine.GetRun(w.t.Context(), w.db.App.In(w.TenantID), runID)
	require.NoError(w.t, err)
	return r
}

// over waits until the engine has ended a run, and settles it.
func (w *world) over(r routine.Run) routine.Run {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		now, err := w.engine.Describe(w.t.Context(), *r.ARN)
		require.NoError(w.t, err)
		return now.Status != engine.Running
	}, time.Minute, 5*time.Millisecond)
	require.NoError(w.t, w.settler.Settle(w.t.Context(), w.TenantID, r.ID))
	return w.get(r.ID)
}

func (w *world) sweep() {
	w.t.Helper()
	require.NoError(w.t, w.settler.Run(w.t.Context(), routine.Job{}))
}

// due has the sweep look at every run that is not over.
func (w *world) due() {
	w.change(`update routine_runs set look_after = clock_timestamp() - interval '1 second' where look_after is not null`)
}

// refused asserts that err is a fault with that text.
func refused(t *testing.T, err error, kind fault.Type, says string) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, kind, fault.From(err).Type, "%v", err)
	require.Contains(t, err.Error(), says)
}

const (
	eventually = time.Minute
	tick       = 5 * time.Millisecond
)
