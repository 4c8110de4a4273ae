package routine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	mailer "github.com/agentplatform/agentplatform/functions/mail"
	functions "github.com/agentplatform/agentplatform/functions/routine"
	"github.com/agentplatform/agentplatform/functions/turn"
	workflows "github.com/agentplatform/agentplatform/functions/workflow"
	"github.com/agentplatform/agentplatform/pkg/agentcore"
	"github.com/agentplatform/agentplatform/pkg/egress"
	"github.com/agentplatform/agentplatform/pkg/guardrail"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
	"github.com/agentplatform/agentplatform/pkg/invoke"
	"github.com/agentplatform/agentplatform/pkg/local/workflow"
	"github.com/agentplatform/agentplatform/pkg/mail"
	"github.com/agentplatform/agentplatform/pkg/manifest"
	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/pkg/routine"
	"github.com/agentplatform/agentplatform/pkg/routine/step"
	"github.com/agentplatform/agentplatform/pkg/sandbox"
	"github.com/agentplatform/agentplatform/pkg/secret"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	engine "github.com/agentplatform/agentplatform/pkg/workflow"
	"github.com/agentplatform/agentplatform/schema"
)

// works is a tenant, a workflow engine, and the functions that take routines to their end, invoked beside their callers.
type works struct {
	*site
	super *pgx.Conn

	mu        sync.Mutex
	say       func(ctx context.Context, r model.Request, s model.Stream) (model.Response, error) // what the model does; nil: it says "Done."
	mails     []mail.Envelope
	lost      map[string]bool // functions that are not reached
	ahead     time.Duration   // of the engine's time
	functions map[string]lambda.Handler
	running   sync.WaitGroup
	ctx       context.Context
}

func newWorks(t *testing.T) *works {
	t.Helper()
	p := handlertest.New(t)
	w := &works{site: &site{World: p.DB.World(t, "acme"), t: t, p: p}, super: p.DB.Superuser(t), lost: map[string]bool{}}
	rows, err := manifest.Parse(schema.Routes)
	require.NoError(t, err)
	e, err := workflow.Open(t.Context(), workflow.Config{URL: p.DB.SuperURL, Functions: w.Call, Now: w.now,
		Ended: func(ctx context.Context, run engine.Run, _ string) error {
			return w.Invoke(ctx, "settle-routine-run", args{"detail": args{"name": run.ID[strings.LastIndex(run.ID, ":")+1:]}})
		}})
	require.NoError(t, err)
	w.engine = e
	p.WithWorkflow(e).WithFunctions(t, nil)
	ports := &handler.Ports{
		DB: func() *postgres.DB { return p.DB.App }, Model: func() model.Model { return w }, Publish: func() publish.Publisher { return p },
		Guardrail: func() guardrail.Guard { return nil }, Sandbox: func() sandbox.Sandbox { return w }, ToolSecrets: func() secret.Store { return nil },
		Egress: func() egress.Config { return egress.Config{} }, Invoke: func() invoke.Invoker { return w }, Call: func() invoke.Caller { return w },
		Runtimes: func() agentcore.Runtimes { return nil }, Mail: func() *mail.Mailer { return mail.New(w) }, MailFrom: func() string { return "agents@acme.test" },
		Workflow: func() engine.Engine { return e }, FunctionName: func(name string) string { return name },
	}
	w.functions = handler.Build(rows, map[string]handler.Constructor{
		"begin-step": functions.BeginStep, "call-tool": functions.CallTool, "settle-routine-run": functions.SettleRoutineRun, "start-run": functions.StartRun,
		"answer-callbacks": workflows.AnswerCallbacks, "dispatch-turn": turn.DispatchTurn, "send-mail": mailer.SendMail}, ports)
	var stop context.CancelFunc
	w.ctx, stop = context.WithCancel(t.Context())
	var engines sync.WaitGroup
	engines.Go(func() { _ = e.Run(w.ctx) })
	t.Cleanup(func() {
		stop()
		engines.Wait()
		w.running.Wait()
		e.Close()
	})
	return w
}

func (w *works) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.ahead)
}

// later moves the engine's time on.
func (w *works) later(by time.Duration) {
	w.mu.Lock()
	w.ahead += by
	w.mu.Unlock()
	w.engine.Look()
}

// lose has these functions not reached until found.
func (w *works) lose(names ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range names {
		w.lost[name] = true
	}
}

func (w *works) found() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.lost)
}

// sent are the mails so far.
func (w *works) sent() []mail.Envelope {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]mail.Envelope(nil), w.mails...)
}

// Converse implements model.Model.
func (w *works) Converse(ctx context.Context, r model.Request, s model.Stream) (model.Response, error) {
	w.mu.Lock()
	say := w.say
	w.mu.Unlock()
	if say != nil {
		return say(ctx, r, s)
	}
	return says(s, "Done."), nil
}

func says(s model.Stream, text string) model.Response {
	s.Text(text)
	return model.Response{Blocks: []model.Block{{Text: text}}, StopReason: model.StopEndTurn, Usage: model.Usage{InputTokens: 10, OutputTokens: 5}}
}

// Run implements sandbox.Sandbox.
func (w *works) Run(context.Context, sandbox.Script) (sandbox.Result, error) {
	return sandbox.Result{Status: sandbox.StatusOK, Value: json.RawMessage(`42`)}, nil
}

// Carry implements mail.Carrier.
func (w *works) Carry(_ context.Context, e mail.Envelope) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mails = append(w.mails, e)
	return e.ID, nil
}

// Invoke implements invoke.Invoker: the function runs beside its caller.
func (w *works) Invoke(_ context.Context, function string, payload any) error {
	body, err := json.Marshal(payload)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil || w.lost[function] || w.ctx.Err() != nil {
		return errors.Join(err, errors.New("the queue is down"))
	}
	w.running.Go(func() { _, _ = w.functions[function].Invoke(w.ctx, body) }) // as a function that fails later
	return nil
}

// Call implements invoke.Caller, and is how the engine calls functions.
func (w *works) Call(ctx context.Context, function string, payload []byte) ([]byte, error) {
	return w.functions[function].Invoke(ctx, payload)
}

// sweep runs what the clock runs.
func (w *works) sweep(function string) {
	w.t.Helper()
	_, err := w.functions[function].Invoke(w.t.Context(), []byte(`{}`))
	require.NoError(w.t, err)
}

// task is a state that does a verb; more are its other fields.
func task(verb, parameters string, more ...string) string {
	return fmt.Sprintf(`{"Type":"Task","Resource":"platform:%s","Parameters":%s,%s}`, verb, parameters, strings.Join(more, ","))
}

const (
	end    = `"End":true`
	caught = `"Catch":[{"ErrorEquals":["States.ALL"],"ResultPath":"$.failure","Next":"Caught"}]`
	after  = `,"Caught":{"Type":"Pass","Parameters":{"error.$":"$.failure.Error","cause.$":"$.failure.Cause"},"End":true}`
)

// only is a definition of one task, whose failure is caught and is then the output.
func only(verb, parameters string, more ...string) string {
	return `{"StartAt":"Only","States":{"Only":` + task(verb, parameters, append(more, caught, end)...) + after + `}}`
}

// made is a routine of that definition.
func (w *works) made(name, definition string) routine.Routine {
	w.t.Helper()
	r, refused := call[routine.Routine](w.site, "create-routine", functions.CreateRoutine, tenant.Admin, args{"input": args{"name": name, "definition": definition}})
	require.Nil(w.t, refused)
	return r
}

// started is a run of a routine, going.
func (w *works) started(routineID, input string) routine.Run {
	w.t.Helper()
	r, refused := call[routine.Run](w.site, "start-routine", functions.StartRoutine, tenant.Admin, args{"id": routineID, "input": input})
	require.Nil(w.t, refused)
	return r
}

// run makes a routine and starts it.
func (w *works) run(definition, input string) routine.Run {
	w.t.Helper()
	return w.started(w.made(fmt.Sprint(time.Now().UnixNano()), definition).ID, input)
}

// get is a run as its row is.
func (w *works) get(id string) routine.Run {
	w.t.Helper()
	r, err := routine.GetRun(w.t.Context(), w.p.DB.App.In(w.TenantID), id)
	require.NoError(w.t, err)
	return r
}

// ended waits until a run's end is written.
func (w *works) ended(id string) (r routine.Run) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		r = w.get(id)
		return r.Status.Over()
	}, time.Minute, 5*time.Millisecond, "run %s", id)
	return r
}

// output is what a run that succeeds gives.
func (w *works) output(id string) (out args) {
	w.t.Helper()
	r := w.ended(id)
	require.Equal(w.t, routine.Succeeded, r.Status, "%v %v", r.Error, r.Cause)
	require.NoError(w.t, json.Unmarshal([]byte(*r.Output), &out))
	return out
}

// asked waits until so many questions wait for a person.
func (w *works) asked(n int) (waiting []step.Approval) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		waiting = w.approvals()
		return len(waiting) == n
	}, time.Minute, 5*time.Millisecond)
	return waiting
}

func (w *works) approvals() []step.Approval {
	w.t.Helper()
	list, refused := call[page.Page[step.Approval]](w.site, "list-routine-approvals", functions.ListRoutineApprovals, tenant.Member, args{})
	require.Nil(w.t, refused)
	return list.Items
}

// change is SQL that no policy binds.
func (w *works) change(sql string, values ...any) {
	w.t.Helper()
	_, err := w.super.Exec(w.t.Context(), sql, values...)
	require.NoError(w.t, err)
}

func value[T any](w *works, sql string, values ...any) (v T) {
	w.t.Helper()
	require.NoError(w.t, w.super.QueryRow(w.t.Context(), sql, values...).Scan(&v))
	return v
}

// user adds a user, and is the world as that one sees it.
func (w *works) user(email string) pgtest.World {
	w.t.Helper()
	other := w.World
	other.UserID = value[string](w, `insert into users (tenant_id, id, email, role) values ($1, gen_random_uuid(), $2, 'member') returning id::text`, w.TenantID, email)
	return other
}
