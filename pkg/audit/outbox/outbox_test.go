package outbox_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/audit/outbox"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var key = []byte("an emission key for tests, 32 characters")

// world is an outbox over a database with two tenants.
type world struct {
	*pgtest.DB
	*outbox.Outbox
	acme, globex string // tenants
	woken        *atomic.Int64
}

func newWorld(t testing.TB) world {
	w := world{DB: pgtest.New(t), woken: new(atomic.Int64)}
	w.Outbox = outbox.New(outbox.Config{Key: key, Wake: func(context.Context) error { w.woken.Add(1); return nil }})
	w.acme, w.globex = w.Tenant(t, "acme"), w.Tenant(t, "globex")
	return w
}

func (w world) event(tenantID string) audit.Event {
	return audit.Event{TenantID: tenantID, Actor: "pool", ActorType: audit.ActorSystem, Source: audit.SourceSystem, Type: audit.AgentCreated,
		Payload: map[string]any{"name": "Ada", "systemPrompt": "password=hunter2"}}
}

// record records one event in a transaction of its own.
func (w world) record(ctx context.Context, tenantID string, e audit.Event) error {
	return w.InTenant(ctx, w.App, tenantID, func(tx pgx.Tx) error { return w.Record(ctx, tx, e) })
}

type row struct {
	TenantID, EventID string
	Position          int64
	Envelope          string
	MAC               []byte
	BodyHash          []byte
	State             string
}

// rows are the outbox's, in order, as nobody but a superuser sees them.
func (w world) rows(t testing.TB) []row {
	t.Helper()
	found, err := w.Superuser(t).Query(t.Context(), `select tenant_id, event_id, position, envelope, mac, body_hash, state from audit_outbox order by position`)
	require.NoError(t, err)
	list, err := pgx.CollectRows(found, pgx.RowToStructByPos[row])
	require.NoError(t, err)
	return list
}

func TestRecord(t *testing.T) {
	w := newWorld(t)
	user := ident.New()
	ctx := tenant.With(t.Context(), tenant.Caller{TenantID: w.acme, UserID: user, RequestID: "req-1"})
	require.NoError(t, w.record(ctx, w.acme, audit.Event{Type: audit.AgentCreated, ResourceType: "agent", Payload: map[string]any{"name": "Ada", "systemPrompt": "hunter2"}}))
	require.EqualValues(t, 1, w.woken.Load())

	rows := w.rows(t)
	require.Len(t, rows, 1)
	env, err := audit.ParseEnvelope([]byte(rows[0].Envelope))
	require.NoError(t, err)
	require.Equal(t, "pending", rows[0].State)
	require.Equal(t, audit.MAC(key, []byte(rows[0].Envelope)), rows[0].MAC)
	require.Equal(t, rows[0].EventID, env.EventID)
	require.Equal(t, w.acme, env.TenantID)
	require.Equal(t, user, env.Actor)
	require.Equal(t, audit.ActorUser, env.ActorType)
	require.Equal(t, audit.SourceGraphQL, env.Source)
	require.Equal(t, "req-1", env.RequestID)
	require.True(t, env.RecordedAt.IsZero())
	require.JSONEq(t, `{"name":"Ada"}`, string(env.Payload))
	require.Equal(t, []string{"systemPrompt"}, env.RedactedFields)

	// What the event says itself counts, also where it says that it was not the caller.
	e := w.event(w.acme)
	e.Source = audit.SourceScheduler
	require.NoError(t, w.record(ctx, w.acme, e))
	env, err = audit.ParseEnvelope([]byte(w.rows(t)[1].Envelope))
	require.NoError(t, err)
	require.Equal(t, "pool system scheduler", env.Actor+" "+string(env.ActorType)+" "+string(env.Source))
}

func TestAnActThatCannotBeRecordedIsNotDone(t *testing.T) {
	w := newWorld(t)
	for name, change := range map[string]func(e *audit.Event){
		"a reserved type":  func(e *audit.Event) { e.Type = audit.PolicyAllowed },
		"an unknown type":  func(e *audit.Event) { e.Type = "agent.renamed" },
		"no actor":         func(e *audit.Event) { e.Actor = "" },
		"text that is not": func(e *audit.Event) { e.Payload["name"] = "\xff" },
		"another tenant":   func(e *audit.Event) { e.TenantID = w.globex },
	} {
		e := w.event(w.acme)
		change(&e)
		err := w.InTenant(t.Context(), w.App, w.acme, func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), `insert into tool_servers (tenant_id, id, name, url) values ($1, $2, 'search', 'https://x.test')`, w.acme, ident.New())
			require.NoError(t, err)
			return w.Record(t.Context(), tx, e)
		})
		require.Error(t, err, name)
		require.Equal(t, name == "another tenant", postgres.IsDenied(err), name)
	}
	var done int
	require.NoError(t, w.Superuser(t).QueryRow(t.Context(), `select count(*) from tool_servers`).Scan(&done))
	require.Zero(t, done)
	require.Empty(t, w.rows(t))
	require.Zero(t, w.woken.Load())
}

func TestAnEventIDIsTakenOnce(t *testing.T) {
	w := newWorld(t)
	e := w.event(w.acme)
	e.EventID = ident.New()
	require.NoError(t, w.record(t.Context(), w.acme, e))
	require.True(t, postgres.IsUnique(w.record(t.Context(), w.acme, e), ""))
	e.TenantID = w.globex
	require.True(t, postgres.IsUnique(w.record(t.Context(), w.globex, e), ""))
	require.Len(t, w.rows(t), 1)
}

func TestWhoRecordsWakes(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	require.ErrorContains(t, w.App.InTenant(ctx, w.acme, func(tx pgx.Tx) error { return w.Record(ctx, tx, w.event(w.acme)) }), "Outbox.InTenant")
	require.ErrorContains(t, w.App.InTenant(ctx, w.acme, func(tx pgx.Tx) error {
		_, _, err := w.RecordOnce(ctx, tx, w.event(w.acme), nil)
		return err
	}), "Outbox.InTenant")

	require.NoError(t, w.InTenant(ctx, w.App, w.acme, func(pgx.Tx) error { return nil }))
	require.Error(t, w.InTenant(ctx, w.App, w.acme, func(tx pgx.Tx) error {
		require.NoError(t, w.Record(ctx, tx, w.event(w.acme)))
		return errors.New("changed my mind")
	}))
	require.Zero(t, w.woken.Load())

	require.NoError(t, w.InTenant(ctx, w.App, w.acme, func(tx pgx.Tx) error { // in a savepoint
		return pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { return w.Record(ctx, tx, w.event(w.acme)) })
	}))
	require.EqualValues(t, 1, w.woken.Load())
	require.Len(t, w.rows(t), 1)
}

func TestWakingComesAfterTheCommitAndNeverFails(t *testing.T) {
	w := newWorld(t)
	var log strings.Builder
	ctx, cancel := context.WithCancel(t.Context())
	seen := 0
	box := outbox.New(outbox.Config{Key: key, Log: slog.New(slog.NewTextHandler(&log, nil)), Wake: func(ctx context.Context) error {
		require.NoError(t, ctx.Err(), "the act is done, whether or not its caller still waits")
		seen = len(w.rows(t))
		return errors.New("the drainer is not there")
	}})
	require.NoError(t, box.InTenant(ctx, w.App, w.acme, func(tx pgx.Tx) error { return box.Record(ctx, tx, w.event(w.acme)) }))
	require.Equal(t, 1, seen)
	cancel()
	box.Wake(ctx)
	require.Equal(t, 2, strings.Count(log.String(), "the sweep will drain"))
	require.NotContains(t, log.String(), "hunter2")

	silent := outbox.New(outbox.Config{Key: key})
	require.NoError(t, silent.InTenant(t.Context(), w.App, w.acme, func(tx pgx.Tx) error { return silent.Record(t.Context(), tx, w.event(w.acme)) }))
	require.Panics(t, func() { outbox.New(outbox.Config{}) })
}

// The application adds rows and reads its own receipts; nothing else.
func TestWhatTheApplicationMayNot(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.record(t.Context(), w.acme, w.event(w.acme)))
	for _, statement := range []string{
		`select envelope from audit_outbox`, `select position from audit_outbox`, `select * from audit_outbox`, `update audit_outbox set mac = ''`, `update audit_outbox set state = 'drained'`,
		`delete from audit_outbox`, `truncate audit_outbox`, `insert into audit_outbox (tenant_id, event_id, envelope, mac, body_hash, state) select $1, $1, '', '', '', 'drained'`,
		`insert into audit_outbox (tenant_id, event_id, envelope, mac, body_hash, position) overriding system value select $1, $1, '', '', '', 0`,
		`select from audit_events`, `select nextval('audit_outbox_position_seq')`,
	} {
		var args []any
		if strings.Contains(statement, "$1") {
			args = []any{w.acme}
		}
		err := w.App.InTenant(t.Context(), w.acme, func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), statement, args...)
			return err
		})
		require.True(t, postgres.IsDenied(err), "%s: %v", statement, err)
	}
	var n int
	require.NoError(t, w.App.InTenant(t.Context(), w.globex, func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), `select count(mac) from audit_outbox`).Scan(&n)
	}))
	require.Zero(t, n, "another tenant's receipts")
}

func TestRecordOnce(t *testing.T) {
	w := newWorld(t)
	e := w.event(w.acme)
	e.EventID = ident.New()
	once := func(e audit.Event, said string) (receipt string, repeated bool, err error) {
		hash := sha256.Sum256([]byte(said))
		err = w.InTenant(t.Context(), w.App, e.TenantID, func(tx pgx.Tx) (err error) {
			receipt, repeated, err = w.RecordOnce(t.Context(), tx, e, hash[:])
			return err
		})
		return receipt, repeated, err
	}
	receipt, repeated, err := once(e, "a")
	require.NoError(t, err)
	require.False(t, repeated)
	rows := w.rows(t)
	require.Equal(t, audit.Receipt(audit.MAC(key, []byte(rows[0].Envelope))), receipt)
	require.EqualValues(t, 1, w.woken.Load())
	plain := sha256.Sum256([]byte("a"))
	require.NotEqual(t, plain[:], rows[0].BodyHash, "nobody can try bodies against it")

	e.RequestID = "of the second call" // not said by the caller
	again, repeated, err := once(e, "a")
	require.NoError(t, err)
	require.True(t, repeated)
	require.Equal(t, receipt, again)

	_, repeated, err = once(e, "b")
	require.False(t, repeated)
	require.Equal(t, 409, fault.From(err).Status())
	require.Equal(t, fault.ValidationError, fault.From(err).Type)

	e.TenantID = w.globex
	_, _, err = once(e, "a")
	require.Equal(t, 409, fault.From(err).Status(), "of another tenant, which is not shown")

	e.TenantID, e.Type = w.acme, audit.PolicyBlocked
	_, _, err = once(e, "a")
	require.Equal(t, 400, fault.From(err).Status())
	require.EqualValues(t, 1, w.woken.Load(), "a repeat wakes nobody")
	require.Equal(t, rows, w.rows(t))
}
