package schedule_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambda/messages"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/functions/schedule"
	"github.com/agentplatform/agentplatform/functions/turn"
	fnworkflow "github.com/agentplatform/agentplatform/functions/workflow"
	"github.com/agentplatform/agentplatform/pkg/agentcore"
	"github.com/agentplatform/agentplatform/pkg/guardrail"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
	"github.com/agentplatform/agentplatform/pkg/invoke"
	"github.com/agentplatform/agentplatform/pkg/manifest"
	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/pkg/sandbox"
	pkgschedule "github.com/agentplatform/agentplatform/pkg/schedule"
	"github.com/agentplatform/agentplatform/pkg/secret"
	"github.com/agentplatform/agentplatform/pkg/thread"
	pkgturn "github.com/agentplatform/agentplatform/pkg/turn"
	"github.com/agentplatform/agentplatform/pkg/workflow"
	"github.com/agentplatform/agentplatform/schema"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

type object = map[string]any

// world is a tenant whose executions a test runs by hand: it says what the state machine would.
type world struct {
	pgtest.World
	t     testing.TB
	p     *handlertest.Platform
	super *pgx.Conn
	tasks *tasks

	say     func(ctx context.Context, r model.Request, s model.Stream) (model.Response, error) // what the model does; nil: it says "Done."
	signal  func(point string)
	lost    func(function string) bool // an invocation of it is; nil: none
	started []string                   // functions that nobody made here, in order

	functions   map[string]lambda.Handler
	running     sync.WaitGroup
	stop        context.CancelFunc
	ctx         context.Context
	mu          sync.Mutex
	began       time.Time
	occurrences int
}

func newWorld(t testing.TB) *world {
	t.Helper()
	p := handlertest.New(t)
	w := &world{World: p.DB.World(t, "acme"), t: t, p: p, super: p.DB.Superuser(t), began: time.Now(), tasks: &tasks{answers: map[string]chan answer{}}}
	rows, err := manifest.Parse(schema.Routes)
	require.NoError(t, err)
	ports := &handler.Ports{
		DB: func() *postgres.DB { return p.DB.App }, Model: func() model.Model { return w }, Publish: func() publish.Publisher { return p },
		Guardrail: func() guardrail.Guard { return nil }, Sandbox: func() sandbox.Sandbox { return nil }, ToolSecrets: func() secret.Store { return nil },
		Invoke: func() invoke.Invoker { return w }, Call: func() invoke.Caller { return nil }, Runtimes: func() agentcore.Runtimes { return nil },
		Workflow: func() workflow.Engine { return w.tasks },
		Signal: func(point string) {
			if signal, _ := w.orders(); signal != nil {
				signal(point)
			}
		},
	}
	w.functions = handler.Build(rows, map[string]handler.Constructor{"open-auto-thread": schedule.OpenAutoThread, "run-auto-turn": schedule.RunAutoTurn,
		"next-auto-turn": schedule.NextAutoTurn, "close-auto-thread": schedule.CloseAutoThread, "dispatch-turn": turn.DispatchTurn, "answer-callbacks": fnworkflow.AnswerCallbacks}, ports)
	w.ctx, w.stop = context.WithCancel(t.Context())
	t.Cleanup(func() {
		w.stop()
		w.running.Wait()
	})
	return w
}

// on has these called from now on; functions may be running.
func (w *world) on(signal func(point string), lost func(function string) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.signal, w.lost = signal, lost
}

func (w *world) orders() (signal func(point string), lost func(function string) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.signal, w.lost
}

// Converse implements model.Model.
func (w *world) Converse(ctx context.Context, r model.Request, s model.Stream) (model.Response, error) {
	if w.say != nil {
		return w.say(ctx, r, s)
	}
	return says(s, "Done."), nil
}

func says(s model.Stream, text string) model.Response {
	if s != nil {
		s.Text(text)
	}
	return model.Response{Blocks: []model.Block{{Text: text}}, StopReason: model.StopEndTurn, Usage: model.Usage{InputTokens: 10, OutputTokens: 5}}
}

// Invoke implements invoke.Invoker: the function runs beside its caller.
func (w *world) Invoke(_ context.Context, function string, payload any) error {
	if _, lost := w.orders(); lost != nil && lost(function) {
		return errors.New("the queue is down")
	}
	body, err := json.Marshal(payload)
	called, made := w.functions[function]
	if !made {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.started = append(w.started, function+" "+string(body))
		return err
	}
	w.running.Go(func() { _, _ = called.Invoke(w.ctx, body) }) // as a function that fails later
	return err
}

// call asks a function as a state does. A failed state's error has a name and a message.
func call[A any](ctx context.Context, w *world, name string, input any) (answer A, failed *messages.InvokeResponse_Error) {
	w.t.Helper()
	body, err := json.Marshal(input)
	require.NoError(w.t, err)
	raw, err := w.functions[name].Invoke(ctx, body)
	if err != nil {
		f, typed := err.(messages.InvokeResponse_Error) //nolint:errorlint // Lambda does not unwrap either
		require.True(w.t, typed, "%v", err)
		return answer, &f
	}
	require.NoError(w.t, json.Unmarshal(raw, &answer))
	return answer, nil
}

// caught is a function's error as a state machine catches it.
func caught(t testing.TB, f *messages.InvokeResponse_Error) *pkgschedule.Failure {
	t.Helper()
	require.NotNil(t, f)
	cause, err := json.Marshal(f)
	require.NoError(t, err)
	return &pkgschedule.Failure{Error: f.Type, Cause: string(cause)}
}

// schedule is one of the world's agent, changed by these fields.
func (w *world) schedule(fields object) pkgschedule.Schedule {
	w.t.Helper()
	said := object{"name": "Daily", "agentId": w.AgentID, "prompt": "Sum up the day.", "expression": "rate(1 minute)"}
	for name, value := range fields {
		said[name] = value
	}
	body, err := json.Marshal(said)
	require.NoError(w.t, err)
	var f pkgschedule.Fields
	require.NoError(w.t, json.Unmarshal(body, &f))
	var s pkgschedule.Schedule
	require.NoError(w.t, w.p.DB.App.InTenant(w.t.Context(), w.TenantID, func(tx pgx.Tx) (err error) {
		s, err = pkgschedule.Create(w.t.Context(), tx, w.TenantID, w.UserID, f)
		return err
	}))
	return s
}

func (w *world) thread(id string) thread.Thread {
	w.t.Helper()
	th, err := thread.Get(w.t.Context(), w.p.DB.App.In(w.TenantID), id)
	require.NoError(w.t, err)
	return th
}

func (w *world) turn(id string) pkgturn.Turn {
	w.t.Helper()
	got, err := pkgturn.Get(w.t.Context(), w.p.DB.App.In(w.TenantID), id)
	require.NoError(w.t, err)
	return got
}

func (w *world) messages(th thread.Thread) (bodies []string) {
	w.t.Helper()
	all, err := thread.Messages(w.t.Context(), w.p.DB.App.In(w.TenantID), []thread.Ref{{ID: th.ID, UUID: th.UUID}}, thread.OldestFirst, nil, 100)
	require.NoError(w.t, err)
	for _, m := range all[th.UUID] {
		bodies = append(bodies, string(m.Role)+": "+m.Body)
	}
	return bodies
}

// send writes a person's message into a thread and dispatches its turn.
func (w *world) send(threadID, body string, onBusy pkgturn.OnBusy) pkgturn.Asked {
	w.t.Helper()
	var asked pkgturn.Asked
	require.NoError(w.t, w.p.DB.App.InTenant(w.t.Context(), w.TenantID, func(tx pgx.Tx) (err error) {
		asked, err = pkgturn.Request(w.t.Context(), tx, w.TenantID, pkgturn.Ask{ThreadID: threadID, Body: body, OnBusy: onBusy, UserID: w.UserID})
		return err
	}))
	return asked
}

// count counts the rows of all tenants.
func (w *world) count(table string) (n int) {
	w.t.Helper()
	require.NoError(w.t, w.super.QueryRow(w.t.Context(), `select count(*) from `+table).Scan(&n))
	return n
}

// change is SQL that no policy binds.
func (w *world) change(sql string, args ...any) {
	w.t.Helper()
	_, err := w.super.Exec(w.t.Context(), sql, args...)
	require.NoError(w.t, err)
}

// updates are the thread updates that subscribers were told.
func (w *world) updates() (said []string) {
	for _, e := range w.p.Published() {
		if u, ok := e.(publish.ThreadUpdate); ok {
			said = append(said, u.ThreadID+" "+u.Thread.Status)
		}
	}
	return said
}

// together calls n times at the same moment.
func together[A any](n int, one func() (A, *messages.InvokeResponse_Error)) (answers []A, failed []*messages.InvokeResponse_Error) {
	answers, failed = make([]A, n), make([]*messages.InvokeResponse_Error, n)
	var ready, done sync.WaitGroup
	barrier := make(chan struct{})
	for i := range n {
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			<-barrier
			answers[i], failed[i] = one()
		})
	}
	ready.Wait()
	close(barrier)
	done.Wait()
	return answers, failed
}
