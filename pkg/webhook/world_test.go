package webhook_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/turn"
	"github.com/agentplatform/agentplatform/pkg/webhook"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// world is a tenant with webhooks.
type world struct {
	pgtest.World
	t     testing.TB
	db    *pgtest.DB
	super *pgx.Conn
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

// create makes a webhook of the world's agent; its token is whole.
func (w *world) create(change ...func(*webhook.Settings)) webhook.Webhook {
	w.t.Helper()
	s := webhook.Settings{Name: "Orders", AgentID: &w.AgentID}
	for _, c := range change {
		c(&s)
	}
	made, err := w.try(s)
	require.NoError(w.t, err)
	return made
}

func (w *world) try(s webhook.Settings) (made webhook.Webhook, err error) {
	err = w.db.App.InTenant(w.t.Context(), w.TenantID, func(tx pgx.Tx) (err error) {
		made, err = webhook.Create(w.t.Context(), tx, w.TenantID, s)
		return err
	})
	return made, err
}

func (w *world) get(id string) webhook.Webhook {
	w.t.Helper()
	got, err := webhook.Get(w.t.Context(), w.db.App.In(w.TenantID), id)
	require.NoError(w.t, err)
	return got
}

// invoke calls a webhook with a body, and with an Idempotency-Key unless that is empty.
func (w *world) invoke(id, key, body string) (webhook.Invoked, error) {
	payload, err := webhook.ReadPayload([]byte(body))
	if err != nil {
		return webhook.Invoked{}, err
	}
	return webhook.Invoke(w.t.Context(), w.db.App, w.TenantID, webhook.Invocation{WebhookID: id, Key: key, Payload: payload})
}

func (w *world) start(id, key, body string) webhook.Invoked {
	w.t.Helper()
	got, err := w.invoke(id, key, body)
	require.NoError(w.t, err)
	return got
}

func (w *world) runs(id string) []turn.Run {
	w.t.Helper()
	runs, err := turn.Runs(w.t.Context(), w.db.App.In(w.TenantID), id, nil, 1000)
	require.NoError(w.t, err)
	return runs
}

// exec arranges what the application cannot.
func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	_, err := w.super.Exec(w.t.Context(), sql, args...)
	require.NoError(w.t, err)
}

// query reads one value of any tenant's rows.
func query[T any](w *world, sql string, args ...any) (v T) {
	w.t.Helper()
	require.NoError(w.t, w.super.QueryRow(w.t.Context(), sql, args...).Scan(&v))
	return v
}

// rows counts what calls have written, of all tenants.
type rows struct{ Runs, Refused, Threads, Messages, Keys, Counted int }

func (w *world) rows() (r rows) {
	w.t.Helper()
	require.NoError(w.t, w.super.QueryRow(w.t.Context(), `select (select count(*) from thread_turns where thread_uuid is not null), (select count(*) from thread_turns where thread_uuid is null),
		(select count(*) from threads), (select count(*) from messages), (select count(*) from webhook_keys),
		(select coalesce(sum(invocation_count), 0) from webhooks)`).Scan(&r.Runs, &r.Refused, &r.Threads, &r.Messages, &r.Keys, &r.Counted))
	return r
}

// whole checks that no call left a part of itself: every run has its thread, its message and its number, and every call is counted.
func (w *world) whole() {
	w.t.Helper()
	r := w.rows()
	require.Equal(w.t, rows{Runs: r.Runs, Refused: r.Refused, Threads: r.Runs, Messages: r.Runs, Keys: r.Keys, Counted: r.Runs + r.Refused}, r)
	require.Zero(w.t, query[int](w, `select count(*) from threads t where not exists (select from thread_turns r join messages m on m.turn_id = r.id and m.thread_uuid = t.uuid where r.thread_uuid = t.uuid)`))
	require.Zero(w.t, query[int](w, `select count(*) from webhook_keys k where not exists (select from thread_turns r where r.id = k.run_id and r.webhook_id = k.webhook_id and r.tenant_id = k.tenant_id)`))
	require.Zero(w.t, query[int](w, `select count(*) from webhooks w where invocation_count <> (select count(*) from thread_turns r where r.webhook_id = w.id and r.tenant_id = w.tenant_id)`))
	require.Zero(w.t, query[int](w, `select count(*) from (select count(*) n, max(number) top, min(number) low from threads where prefix = 'AUTO' group by tenant_id) t where n <> top or low <> 1`), "gaps")
}

func is(t testing.TB, err error, typ fault.Type, text string) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, typ, fault.From(err).Type, "%v", err)
	require.Contains(t, fault.From(err).Message, text)
}

const day = 24 * time.Hour
