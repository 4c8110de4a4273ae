package step_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/callback"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/guardrail"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/mail"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/routine"
	"github.com/agentplatform/agentplatform/pkg/routine/step"
	"github.com/agentplatform/agentplatform/pkg/text"
	"github.com/agentplatform/agentplatform/pkg/tool"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// world is a tenant with a run whose tasks a test asks for, as the engine would.
type world struct {
	pgtest.World
	t      *testing.T
	db     *pgtest.DB
	super  *pgx.Conn
	run    routine.Run
	caller *step.Caller

	mu     sync.Mutex
	called map[string]int // tools and mails
	told   []callback.Task
	again  []step.Work
	over   map[string]bool // callbacks of tasks that the engine does not wait for any more
	away   error           // what the engine is out of reach with
	signal func(point string)
}

func newWorld(t *testing.T) *world {
	t.Helper()
	db := pgtest.New(t)
	w := &world{World: db.World(t, "acme"), t: t, db: db, super: db.Superuser(t), called: map[string]int{}, over: map[string]bool{}}
	require.NoError(t, db.App.InTenant(t.Context(), w.TenantID, func(tx pgx.Tx) error {
		var f routine.Fields
		f.Name = text.Patch[string]{Set: true, Value: new("r")}
		f.Definition = text.Patch[string]{Set: true, Value: new(`{"StartAt":"A","States":{"A":{"Type":"Succeed"}}}`)}
		r, err := routine.Create(t.Context(), tx, w.TenantID, w.UserID, f)
		if err != nil {
			return err
		}
		w.run, err = routine.Start(t.Context(), tx, w.TenantID, routine.NewRun{RoutineID: r.ID, StartedBy: routine.StartedBy{Type: routine.ByUser, ID: w.UserID}})
		return err
	}))
	w.grant("once", "again")
	w.caller = &step.Caller{
		DB: db.App, Tools: tool.Of(w.tool("once", false), w.tool("again", true)), Guard: guardrail.Checker{},
		Send: func(context.Context, []byte) ([]byte, error) {
			w.count("mail")
			return json.Marshal(map[string]any{"data": mail.Sent{MessageID: "<1@acme.test>"}})
		},
		Ask: func(ctx context.Context, t callback.Task) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.away != nil || !w.over[t.CallbackID] {
				return w.away
			}
			return db.App.InTenant(ctx, t.TenantID, func(tx pgx.Tx) error {
				_, err := tx.Exec(ctx, `delete from callbacks where id = $1`, t.CallbackID)
				return err
			})
		},
		Answer: func(_ context.Context, t callback.Task) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.told = append(w.told, t)
			return nil
		},
		Again: func(_ context.Context, work step.Work) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.again = append(w.again, work)
			return nil
		},
		Signal: func(point string) {
			if w.signal != nil {
				w.signal(point)
			}
		},
	}
	return w
}

func (w *world) count(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.called[what]++
}

func (w *world) times(what string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.called[what]
}

// tool answers with its input, or does what that asks for.
func (w *world) tool(name string, idempotent bool) tool.Tool {
	return tool.Tool{Name: name, Idempotent: idempotent, Timeout: 5 * time.Second, Run: func(_ context.Context, c tool.Call) (any, error) {
		w.count(name)
		switch {
		case strings.Contains(string(c.Input), "panic"):
			panic("boom")
		case strings.Contains(string(c.Input), "fail"):
			return nil, errors.New("the secret cause")
		case strings.Contains(string(c.Input), "nul"):
			return nil, fault.Invalid("there is \x00 none")
		case strings.Contains(string(c.Input), "much"):
			return strings.Repeat("x", tool.MaxOutput), nil
		}
		return map[string]any{"said": c.Input, "agent": c.AgentID, "turn": c.TurnID}, nil
	}}
}

func (w *world) grant(tools ...string) {
	w.change(`update agents set tools = $2 where id = $1`, w.AgentID, tools)
}

// begin asks for a step as the engine does.
func (w *world) begin(verb routine.Verb, input any) step.Begun {
	w.t.Helper()
	raw, err := json.Marshal(input)
	require.NoError(w.t, err)
	begun, err := step.Begin(w.t.Context(), w.db.App, w.task(verb, raw))
	require.NoError(w.t, err)
	return begun
}

// task is what the engine says of one.
func (w *world) task(verb routine.Verb, input json.RawMessage) routine.Call {
	return routine.Call{TenantID: w.TenantID, RoutineID: w.run.RoutineID, Version: w.run.Version, RunID: w.run.ID, State: "A", Verb: verb, Entered: time.Now(), Token: ident.New(), Input: input}
}

// call begins a tool's call.
func (w *world) call(name string, input any) step.Work {
	w.t.Helper()
	return step.Work{TenantID: w.TenantID, StepID: w.begin(routine.CallTool, map[string]any{"agentId": w.AgentID, "tool": name, "input": input}).StepID}
}

func (w *world) do(work step.Work) {
	w.t.Helper()
	require.NoError(w.t, w.caller.Do(w.t.Context(), work))
}

// expire ends the lease of whoever has the step.
func (w *world) expire(work step.Work) {
	w.change(`update routine_steps set lease_until = clock_timestamp() - interval '1 second' where id = $1`, work.StepID)
}

// outcome is what the step's row, and its callback, say.
func (w *world) outcome(work step.Work) (status, told string) {
	w.t.Helper()
	var code, reason, output *string
	require.NoError(w.t, w.super.QueryRow(w.t.Context(), `select s.status, c.output::text, c.error_type, c.error from routine_steps s
		join callbacks c on c.tenant_id = s.tenant_id and c.id = s.callback_id where s.id = $1`, work.StepID).Scan(&status, &output, &code, &reason))
	switch {
	case output != nil:
		told = *output
	case code != nil:
		told = *code + ": " + *reason
	}
	return status, told
}

func (w *world) change(sql string, args ...any) {
	w.t.Helper()
	_, err := w.super.Exec(w.t.Context(), sql, args...)
	require.NoError(w.t, err)
}
