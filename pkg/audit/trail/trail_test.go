package trail_test

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/audit/trail"
	"github.com/agentplatform/agentplatform/pkg/audit/trail/trailtest"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func at(minutes int) ident.Time {
	return ident.Time{Time: noon.Add(time.Duration(minutes) * time.Minute)}
}

// reader runs a reading in a transaction of the compliance reader.
func read[T any](t *testing.T, db *postgres.DB, run func(tx pgx.Tx) (T, error)) (result T, err error) {
	t.Helper()
	err = db.Unbound(t.Context(), func(tx pgx.Tx) error {
		result, err = run(tx)
		return err
	})
	return result, err
}

func list(t *testing.T, db *postgres.DB, f trail.Filter, after *trail.Cursor, limit int) ([]string, error) {
	return read(t, db, func(tx pgx.Tx) (ids []string, err error) {
		for e, err := range trail.List(t.Context(), tx, f, after, limit) {
			if err != nil {
				return ids, err
			}
			ids = append(ids, e.EventID)
		}
		return ids, nil
	})
}

func TestList(t *testing.T) {
	db := pgtest.New(t)
	reader := db.Open(t, db.ReaderURL)
	acme, globex := db.Tenant(t, "acme"), db.Tenant(t, "globex")
	log := trailtest.New(t, db)
	first := log.Append(
		audit.Event{TenantID: acme, EventID: "01890000-0000-7000-8000-000000000001", OccurredAt: at(3), Actor: "ada", ActorType: audit.ActorUser},
		audit.Event{TenantID: globex, OccurredAt: at(1), Actor: "bob", ActorType: audit.ActorUser},
		audit.Event{TenantID: acme, OccurredAt: at(2), Type: audit.AgentDeleted, Payload: map[string]any{"agentId": "x"}},
		audit.Event{TenantID: globex, EventID: "01890000-0000-7000-8000-000000000002", OccurredAt: at(3)}, // the same instant as the first: the later id comes first
		audit.Event{TenantID: acme, OccurredAt: at(9)},
	)
	ids := make([]string, len(first))
	for i, e := range first {
		ids[i] = e.EventID
	}
	newestFirst := []string{ids[4], ids[3], ids[0], ids[2], ids[1]}
	got, err := list(t, reader, trail.Filter{}, nil, 100)
	require.NoError(t, err)
	require.Equal(t, newestFirst, got)

	// Page by page, every event once.
	var paged []string
	var after *trail.Cursor
	for {
		page, err := list(t, reader, trail.Filter{}, after, 2)
		require.NoError(t, err)
		if len(page) == 0 {
			break
		}
		paged = append(paged, page...)
		e, err := read(t, reader, func(tx pgx.Tx) (trail.Event, error) { return trail.ByID(t.Context(), tx, page[len(page)-1]) })
		require.NoError(t, err)
		cursor := e.Cursor()
		after = &cursor
	}
	require.Equal(t, newestFirst, paged)

	deleted, ada, nobody, from, to := string(audit.AgentDeleted), "ada", "nobody", at(2), at(3)
	for name, c := range map[string]struct {
		filter trail.Filter
		want   []string
	}{
		"tenant":              {trail.Filter{TenantID: &acme}, []string{ids[4], ids[0], ids[2]}},
		"type":                {trail.Filter{EventType: &deleted}, []string{ids[2]}},
		"actor":               {trail.Filter{Actor: &ada}, []string{ids[0]}},
		"no such actor":       {trail.Filter{Actor: &nobody}, nil},
		"from, inclusive":     {trail.Filter{From: &to}, []string{ids[4], ids[3], ids[0]}},
		"to, exclusive":       {trail.Filter{To: &to}, []string{ids[2], ids[1]}},
		"all fields must fit": {trail.Filter{EventType: &deleted, TenantID: &acme, From: &from, To: &to}, []string{ids[2]}},
		"one does not":        {trail.Filter{EventType: &deleted, TenantID: &globex}, nil},
	} {
		got, err := list(t, reader, c.filter, nil, 100)
		require.NoError(t, err, name)
		require.Equal(t, c.want, got, name)
	}
}

func TestOneAndBack(t *testing.T) {
	db := pgtest.New(t)
	reader := db.Open(t, db.ReaderURL)
	acme, globex := db.Tenant(t, "acme"), db.Tenant(t, "globex")
	log := trailtest.New(t, db)
	said := audit.Event{TenantID: acme, OccurredAt: at(1), Actor: "a \"quoted\" actor,\tü", ActorType: audit.ActorAgent, Source: audit.SourceRuntime,
		Type: audit.ToolServerAdded, ResourceType: "tool_server", ResourceID: "r", ThreadID: ident.New(), AgentID: ident.New(), RequestID: "req",
		Payload: map[string]any{"mcpId": "1", "url": "https://a.test/", "unlisted": 1}}
	chain := log.Append(said)
	for i := range 11 {
		log.Append(audit.Event{TenantID: globex, OccurredAt: at(i)})
		chain = append(chain, log.Append(audit.Event{TenantID: acme, OccurredAt: at(20 - i)})...)
	}

	byID, err := read(t, reader, func(tx pgx.Tx) (trail.Event, error) { return trail.ByID(t.Context(), tx, chain[0].EventID) })
	require.NoError(t, err)
	byHash, err := read(t, reader, func(tx pgx.Tx) (trail.Event, error) { return trail.ByHash(t.Context(), tx, chain[0].Hash) })
	require.NoError(t, err)
	require.Equal(t, byID, byHash)
	text, err := byID.Append(nil)
	require.NoError(t, err)
	want, err := chain[0].Append(nil)
	require.NoError(t, err)
	require.Equal(t, string(want), string(text), "every member")
	require.Equal(t, []string{"unlisted"}, byID.RedactedFields)

	back := func(hash string, limit int) ([]int64, error) {
		events, err := read(t, reader, func(tx pgx.Tx) ([]trail.Event, error) { return trail.Back(t.Context(), tx, hash, limit) })
		var positions []int64
		for _, e := range events {
			require.Equal(t, acme, e.TenantID)
			positions = append(positions, e.Position)
		}
		return positions, err
	}
	for limit, want := range map[int][]int64{1: {12}, 3: {12, 11, 10}, 10: {12, 11, 10, 9, 8, 7, 6, 5, 4, 3}} {
		got, err := back(chain[11].Hash, limit)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	got, err := back(chain[1].Hash, 10)
	require.NoError(t, err)
	require.Equal(t, []int64{2, 1}, got, "up to the first")

	for name, missing := range map[string]func(tx pgx.Tx) (trail.Event, error){
		"id":    func(tx pgx.Tx) (trail.Event, error) { return trail.ByID(t.Context(), tx, ident.New()) },
		"no id": func(tx pgx.Tx) (trail.Event, error) { return trail.ByID(t.Context(), tx, "x") },
		"hash":  func(tx pgx.Tx) (trail.Event, error) { return trail.ByHash(t.Context(), tx, strings.Repeat("0", 64)) },
		"start of way": func(tx pgx.Tx) (trail.Event, error) {
			_, err := trail.Back(t.Context(), tx, "x", 3)
			return trail.Event{}, err
		},
	} {
		_, err := read(t, reader, missing)
		require.Equal(t, fault.Missing("event"), fault.From(err), name)
	}

	anchored, err := read(t, reader, func(tx pgx.Tx) (int64, error) { return trail.Anchored(t.Context(), tx) })
	require.NoError(t, err)
	require.Zero(t, anchored)
	log.Publish()
	log.Publish()
	anchored, err = read(t, reader, func(tx pgx.Tx) (int64, error) { return trail.Anchored(t.Context(), tx) })
	require.NoError(t, err)
	require.EqualValues(t, 2, anchored)
}

// TestDamage: a row of which one byte was changed is given out by no reader, and is named.
func TestDamage(t *testing.T) {
	for name, change := range map[string]string{
		"text":              `canonical = replace(canonical, '"Ada"', '"Eve"')`,
		"text, not JSON":    `canonical = canonical || ' '`,
		"text and its hash": `canonical = replace(canonical, '"Ada"', '"Eve" '), event_hash = encode(sha256(convert_to(replace(canonical, '"Ada"', '"Eve" ') || prev_hash, 'UTF8')), 'hex')`,
		"hash":              `event_hash = repeat('0', 64)`,
		"prev_hash":         `prev_hash = repeat('0', 64)`,
		"event_id":          `event_id = '01890000-0000-7000-8000-000000000000'`,
		"actor":             `actor = 'eve'`,
		"event_type":        `event_type = 'agent.deleted'`,
		"occurred_at":       `occurred_at = occurred_at - interval '1 microsecond'`,
		"recorded_at":       `recorded_at = recorded_at + interval '1 microsecond'`,
	} {
		t.Run(name, func(t *testing.T) {
			db := pgtest.New(t)
			log := trailtest.New(t, db)
			acme := db.Tenant(t, "acme")
			log.Append(audit.Event{TenantID: acme, OccurredAt: at(1)})
			log.Tamper(`update audit_events set ` + change)
			_, err := list(t, db.Open(t, db.ReaderURL), trail.Filter{TenantID: &acme}, nil, 10)
			require.Equal(t, fault.InternalError, fault.From(err).Type)
			require.Regexp(t, `^the audit event [0-9a-f-]{36} is damaged \(.+\): run audit-verifier verify$`, fault.From(err).Message)
		})
	}
}
