package callback_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/callback"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/workflow"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const (
	minute = time.Minute
	tick   = 5 * time.Millisecond
)

// world is a tenant whose turns a test writes by hand, and the tasks of an engine that wait for them.
type world struct {
	pgtest.World
	t       testing.TB
	db      *pgtest.DB
	super   *pgx.Conn
	tasks   *tasks
	courier *callback.Courier
	numbers int
}

func newWorld(t testing.TB) *world {
	t.Helper()
	db := pgtest.New(t)
	w := &world{World: db.World(t, "acme"), t: t, db: db, super: db.Superuser(t), tasks: &tasks{waiting: map[string]bool{}}}
	w.courier = &callback.Courier{DB: db.App, Tasks: w.tasks}
	return w
}

// tasks are those of an engine: each is answered once.
type tasks struct {
	mu      sync.Mutex
	waiting map[string]bool // by token; false: it is over
	told    []string        // in order
	down    error           // what every call is answered
}

// task is a new one that waits.
func (e *tasks) task() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	token := "token-" + ident.New()
	e.waiting[token] = true
	return token
}

func (e *tasks) answer(ctx context.Context, token, told string, over bool) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	goesOn, known := e.waiting[token]
	switch {
	case e.down != nil:
		return e.down
	case !known:
		return workflow.ErrNoTask
	case !goesOn:
		return workflow.ErrTaskOver
	}
	e.waiting[token] = !over
	e.told = append(e.told, told)
	return nil
}

func (e *tasks) Succeed(ctx context.Context, token string, output json.RawMessage) error {
	if _, err := workflow.Data(output); err != nil {
		return err
	}
	return e.answer(ctx, token, "succeed "+string(output), true)
}

func (e *tasks) Fail(ctx context.Context, token, code, cause string) error {
	return e.answer(ctx, token, "fail "+code+": "+cause, true)
}

func (e *tasks) Heartbeat(ctx context.Context, token string) error {
	return e.answer(ctx, token, "heartbeat", false)
}

// said is what the engine was told since it was last asked for.
func (w *world) said() []string {
	w.tasks.mu.Lock()
	defer w.tasks.mu.Unlock()
	told := w.tasks.told
	w.tasks.told = nil
	return told
}

// turn is a running one with a message, in a thread of its own.
func (w *world) turn() (id string) {
	w.t.Helper()
	w.numbers++
	thread, id := ident.New(), ident.New()
	w.exec(`insert into threads (tenant_id, uuid, prefix, number, channel, agent_id, space_id, message_count) values ($1, $2, 'AUTO', $3, 'AUTO', $4, $5, 2)`,
		w.TenantID, thread, w.numbers, w.AgentID, w.SpaceID)
	w.exec(`insert into thread_turns (tenant_id, id, thread_uuid, agent_id, number, status, started_at) values ($1, $2, $3, $4, 1, 'running', now())`, w.TenantID, id, thread, w.AgentID)
	w.exec(`insert into messages (tenant_id, id, thread_uuid, position, role, body, turn_id, turn_number) values ($1, gen_random_uuid(), $2, 1, 'user', 'Hello?', $3, 1)`, w.TenantID, thread, id)
	return id
}

// ends ends a turn as whoever has it would.
func (w *world) ends(turnID, status, reply, reason string) {
	w.t.Helper()
	if reply != "" {
		w.exec(`insert into messages (tenant_id, id, thread_uuid, position, role, body, turn_id, turn_number)
			select tenant_id, gen_random_uuid(), thread_uuid, 2, 'assistant', $2, id, 1 from thread_turns where id = $1`, turnID, reply)
	}
	require.NoError(w.t, w.tx(func(tx pgx.Tx) error {
		_, err := tx.Exec(w.t.Context(), `update thread_turns set status = $2, error = nullif($3, ''), finished_at = clock_timestamp() where id = $1`, turnID, status, reason)
		return err
	}))
}

func (w *world) tx(run func(tx pgx.Tx) error) error {
	return w.db.App.InTenant(w.t.Context(), w.TenantID, run)
}

// add adds a callback of a task that waits.
func (w *world) add(c callback.Callback) callback.Added {
	w.t.Helper()
	c.TenantID = w.TenantID
	if c.Token == "" {
		c.Token = w.tasks.task()
	}
	var a callback.Added
	require.NoError(w.t, w.tx(func(tx pgx.Tx) (err error) {
		a, err = callback.Add(w.t.Context(), tx, c)
		return err
	}))
	return a
}

// deliver is an invocation; without an id, the sweep.
func (w *world) deliver(id string) error {
	task := callback.Task{}
	if id != "" {
		task = callback.Task{TenantID: w.TenantID, CallbackID: id}
	}
	return w.courier.Deliver(w.t.Context(), task)
}

func (w *world) count() (n int) {
	w.t.Helper()
	require.NoError(w.t, w.super.QueryRow(w.t.Context(), `select count(*) from callbacks`).Scan(&n))
	return n
}

// passes lets so much time pass for the sweep.
func (w *world) passes(d time.Duration) {
	w.t.Helper()
	w.exec(`update callbacks set next_at = next_at - $1::interval, created_at = created_at - $1::interval`, d)
}

// exec is done as a role that no policy binds.
func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	_, err := w.super.Exec(w.t.Context(), sql, args...)
	require.NoError(w.t, err, sql)
}
