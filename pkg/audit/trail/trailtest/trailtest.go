// Package trailtest puts events into chains, in tests: as the ledger's writer leaves them, without outbox and writer.
package trailtest

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/audit/trail"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
)

// Log is the chains of one database.
type Log struct {
	t     testing.TB
	conn  *pgx.Conn
	heads map[string]trail.Event
	// Cadence is what events are stamped with; it starts at 1.
	Cadence int64
}

// New is the log of a test's database, with empty chains.
func New(t testing.TB, db *pgtest.DB) *Log {
	return &Log{t: t, conn: db.Superuser(t), heads: map[string]trail.Event{}, Cadence: 1}
}

// Append chains events in this order. What they leave empty of actor, source and type is filled in; recorded_at is one second after the
// event before, of all tenants, or after occurred_at, whichever is later.
func (l *Log) Append(events ...audit.Event) []trail.Event {
	l.t.Helper()
	var rows [][]any
	var appended []trail.Event
	for _, e := range events {
		chained := l.chain(e)
		text, err := chained.Append(nil)
		require.NoError(l.t, err)
		chained.Hash = audit.Hash(text, chained.Prev)
		l.heads[chained.TenantID] = chained
		appended = append(appended, chained)
		rows = append(rows, []any{chained.TenantID, chained.Position, chained.EventID, chained.OccurredAt.Time, chained.RecordedAt.Time, chained.Actor,
			string(chained.Type), chained.Hash, chained.Prev, chained.Cadence, string(text)})
	}
	_, err := l.conn.CopyFrom(l.t.Context(), pgx.Identifier{"audit_events"}, []string{"tenant_id", "chain_position", "event_id", "occurred_at", "recorded_at", "actor",
		"event_type", "event_hash", "prev_hash", "cadence", "canonical"}, pgx.CopyFromRows(rows))
	require.NoError(l.t, err)
	for _, head := range l.heads {
		_, err := l.conn.Exec(l.t.Context(), `insert into audit_heads (tenant_id, length, event_hash, recorded_at) values ($1, $2, $3, $4)
			on conflict (tenant_id) do update set length = $2, event_hash = $3, recorded_at = $4`, head.TenantID, head.Position, head.Hash, head.RecordedAt)
		require.NoError(l.t, err)
	}
	return appended
}

func (l *Log) chain(e audit.Event) trail.Event {
	l.t.Helper()
	if e.Actor == "" {
		e.Actor, e.ActorType = "somebody", audit.ActorUser
	}
	if e.Source == "" {
		e.Source = audit.SourceGraphQL
	}
	if e.Type == "" {
		e.Type, e.Payload = audit.AgentCreated, map[string]any{"agentId": ident.New(), "name": "Ada"}
	}
	env, err := e.Envelope()
	require.NoError(l.t, err)
	env.RecordedAt = env.OccurredAt
	for _, head := range l.heads {
		if next := head.RecordedAt.Add(time.Second); next.After(env.RecordedAt.Time) {
			env.RecordedAt = ident.Time{Time: next}
		}
	}
	last, prev := l.heads[env.TenantID], audit.Genesis
	if last.Hash != "" {
		prev = last.Hash
	}
	return trail.Event{Envelope: env, Position: last.Position + 1, Prev: prev, Cadence: l.Cadence}
}

// Publish marks the anchor of the current cadence as published, and begins the next cadence.
func (l *Log) Publish() {
	l.t.Helper()
	_, err := l.conn.Exec(l.t.Context(), `insert into audit_anchors (number, seconds, window_from, window_to, recorded_at, object_sha256, header_sha256, events, tenants, witnessed, anchored_at)
		values ($1, 900, now() - interval '15 minutes', now(), now(), repeat('ab', 32), repeat('cd', 32), 7, 1, false, now())`, l.Cadence)
	require.NoError(l.t, err)
	l.Cadence++
}

// Tamper runs a statement that no role of the platform may.
func (l *Log) Tamper(sql string, args ...any) {
	l.t.Helper()
	_, err := l.conn.Exec(l.t.Context(), `set session_replication_role = replica`) // no triggers
	require.NoError(l.t, err)
	tag, err := l.conn.Exec(l.t.Context(), sql, args...)
	require.NoError(l.t, err)
	require.NotZero(l.t, tag.RowsAffected(), "nothing was changed")
	_, err = l.conn.Exec(l.t.Context(), `reset session_replication_role`)
	require.NoError(l.t, err)
}
