package retention_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/retention"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// now is a moment of the tests' own: nothing here asks the clock, but for what a prompt's text is touched by.
var now = time.Now().UTC().Truncate(time.Microsecond)

const day = 24 * time.Hour

// world is a tenant whose turns a test writes by hand.
type world struct {
	pgtest.World
	t       testing.TB
	db      *pgtest.DB
	super   *pgx.Conn
	threads int
}

func newWorld(t testing.TB) *world {
	t.Helper()
	db := pgtest.New(t)
	return &world{World: db.World(t, "acme"), t: t, db: db, super: db.Superuser(t)}
}

// neighbour is another tenant of the same database.
func (w *world) neighbour(slug string) *world {
	w.t.Helper()
	return &world{World: w.db.World(w.t, slug), t: w.t, db: w.db, super: w.super}
}

// exec is done as a role that no policy binds.
func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	_, err := w.super.Exec(w.t.Context(), sql, args...)
	require.NoError(w.t, err)
}

// one is the value that a query gives.
func one[T any](w *world, sql string, args ...any) (v T) {
	w.t.Helper()
	require.NoError(w.t, w.super.QueryRow(w.t.Context(), sql, args...).Scan(&v), sql)
	return v
}

func (w *world) thread() string {
	w.t.Helper()
	w.threads++
	id := ident.New()
	w.exec(`insert into threads (tenant_id, uuid, prefix, number, channel, agent_id, space_id) values ($1, $2, 'CHAT', $3, 'CHAT', $4, $5)`, w.TenantID, id, w.threads, w.AgentID, w.SpaceID)
	return id
}

// turn is one that ended so long ago, with three steps, an approval and a tool's outcome; in a thread of its own.
func (w *world) turn(ago time.Duration) string { return w.turnIn(w.thread(), "succeeded", ago) }

func (w *world) turnIn(thread, status string, ago time.Duration) string {
	w.t.Helper()
	id := ident.New()
	at := now.Add(-ago)
	w.exec(`insert into thread_turns (tenant_id, id, thread_uuid, agent_id, number, status, started_at, finished_at, tool_outcomes, prompt, input_tokens, cost_micros)
		values ($1, $2, $3, $4, (select count(*) + 1 from thread_turns where thread_uuid = $3), $5::text, $6,
			case when $5::text not in ('queued', 'running', 'waiting') then $6::timestamptz end,
			'[{"toolCallId":"c","name":"read","status":"ok","output":"hello","error":"\u0000","durationMs":3}]', '{"system":"00","tools":"00","messages":[1],"maxTokens":9}', 7, 11)`,
		w.TenantID, id, thread, w.AgentID, status, at)
	w.exec(`insert into turn_steps (tenant_id, turn_id, number, kind, name, status, response) select $1, $2, n, case n when 2 then 'tool' else 'model' end, 'x', 'finished', '{"text":"\u0000"}'
		from generate_series(1, 3) n`, w.TenantID, id)
	w.exec(`insert into tool_approvals (tenant_id, turn_id, step, tool_call_id, name, input, status) values ($1, $2, 2, 'c', 'read', '{"secret":1}', 'approved')`, w.TenantID, id)
	return id
}

// run makes a turn a webhook's.
func (w *world) run(turnID string) string {
	w.t.Helper()
	w.exec(`update thread_turns set webhook_id = $2, context_snapshot = '{"secret":1}' where id = $1`, turnID, ident.New())
	return turnID
}

// pruned reports of each of these turns whether its steps are gone; what is half gone fails the test.
func (w *world) pruned(turns ...string) (gone []bool) {
	w.t.Helper()
	for _, id := range turns {
		state := one[string](w, `select concat_ws(' ', (select count(*) from turn_steps where turn_id = t.id), t.steps_pruned_at is not null, t.prompt is not null,
			tool_outcomes::text like '%hello%', (select input::text from tool_approvals where turn_id = t.id), t.input_tokens, t.cost_micros)
			from thread_turns t where id = $1`, id)
		switch state {
		case `3 f t t {"secret":1} 7 11`:
			gone = append(gone, false)
		case `0 t f f null 7 11`:
			gone = append(gone, true)
		default:
			require.Fail(w.t, "a turn is half pruned", state)
		}
	}
	return gone
}

func (w *world) prune() retention.Pruned {
	w.t.Helper()
	done, err := w.pruner().Run(w.t.Context())
	require.NoError(w.t, err)
	return done
}

func (w *world) pruner() *retention.Pruner {
	return &retention.Pruner{DB: w.db.App, Now: func() time.Time { return now }}
}

// set changes the policy.
func (w *world) set(c retention.Change) (p retention.Policy, err error) {
	err = w.db.App.InTenant(w.t.Context(), w.TenantID, func(tx pgx.Tx) (err error) {
		p, err = retention.Set(w.t.Context(), tx, w.TenantID, c)
		return err
	})
	return p, err
}

func (w *world) policy() retention.Policy {
	w.t.Helper()
	p, err := retention.Get(w.t.Context(), w.db.App.In(w.TenantID))
	require.NoError(w.t, err)
	return p
}

func sha(n int) string { return fmt.Sprintf("%064x", n) }
