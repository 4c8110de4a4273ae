package proof_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/audit/ledger"
	"github.com/agentplatform/agentplatform/pkg/audit/outbox"
	"github.com/agentplatform/agentplatform/pkg/audit/proof"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/local/bucket"
	"github.com/agentplatform/agentplatform/pkg/object"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/sign"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// world is a log of some tenants.
type world struct {
	t       testing.TB
	db      *pgtest.DB
	reader  *postgres.DB
	bucket  *object.Bucket
	tenants []string
	box     *outbox.Outbox
	ledger  *ledger.Ledger
	keys    []anchor.Verifier
	offset  time.Duration
}

func newWorld(t testing.TB, tenants int) *world {
	t.Helper()
	key := []byte("the emission key of the proof's tests")
	w := &world{t: t, db: pgtest.New(t), box: outbox.New(outbox.Config{Key: key}), offset: -24 * time.Hour}
	server, err := bucket.Start(t.Context(), bucket.Config{Dir: t.TempDir(), RootKey: "root", RootSecret: "root-secret", ReaderKey: "reader", ReaderSecret: "reader-secret",
		Buckets: []bucket.Bucket{{Name: "audit", ObjectLock: true, Versioning: true}}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop(context.Background())) })
	w.bucket = object.New(object.Config{Region: "us-east-1", Endpoint: server.Endpoint(), AccessKey: "root", Secret: "root-secret", PathStyle: true}).In("audit")
	w.reader = w.db.Open(t, w.db.ReaderURL)
	signer, err := sign.File(filepath.Join(t.TempDir(), "key.pem"))
	require.NoError(t, err)
	public, err := signer.Public(t.Context())
	require.NoError(t, err)
	verifier, err := anchor.LogVerifier("proof.test/audit", public)
	require.NoError(t, err)
	w.keys = []anchor.Verifier{verifier}
	w.ledger = ledger.New(ledger.Config{DB: w.db.Open(t, w.db.LedgerURL), Bucket: w.bucket, Signer: signer, Key: key, Origin: "proof.test/audit", BeaconEvery: -1,
		Now: func() time.Time { return time.Now().Add(w.offset) }})
	for i := range tenants {
		w.tenants = append(w.tenants, w.db.Tenant(t, fmt.Sprintf("tenant-%d", i)))
	}
	return w
}

func (w *world) record(tenant string, n int) (events []string) {
	w.t.Helper()
	for range n {
		e := audit.Event{EventID: ident.New(), TenantID: tenant, OccurredAt: ident.Time{Time: time.Now().Add(w.offset)}, Actor: "tester", ActorType: audit.ActorSystem, Source: audit.SourceSystem,
			Type: audit.AgentCreated, Payload: map[string]any{"name": "Ada ü"}}
		require.NoError(w.t, w.box.InTenant(w.t.Context(), w.db.App, tenant, func(tx pgx.Tx) error { return w.box.Record(w.t.Context(), tx, e) }))
		events = append(events, e.EventID)
	}
	return events
}

func (w *world) drain() { require.NoError(w.t, w.ledger.Drain(w.t.Context())) }

func (w *world) anchor() {
	w.t.Helper()
	w.drain()
	w.offset += 15 * time.Minute
	require.NoError(w.t, w.ledger.PublishAnchor(w.t.Context()))
}

func TestAProofChecksAndShowsNothingOfOthers(t *testing.T) {
	w := newWorld(t, 3)
	var events []string
	for range 3 {
		for _, tenant := range w.tenants {
			events = append(events, w.record(tenant, 3)...)
		}
		w.anchor()
	}
	for i, id := range events {
		file, err := proof.Build(t.Context(), w.reader, w.bucket, id)
		require.NoError(t, err)
		checked, err := anchor.Check(file, w.keys)
		require.NoError(t, err)
		require.Equal(t, id, checked.EventID)
		require.EqualValues(t, i/9*3+i%3+1, checked.Position)
		require.Equal(t, w.tenants[i%9/3], checked.TenantID)
		require.Less(t, len(file)-len(checked.Event), 2048)
		for _, other := range w.tenants {
			require.Equal(t, other == checked.TenantID, strings.Contains(string(file), other))
		}
		for j, other := range events {
			require.Equal(t, j == i, strings.Contains(string(file), other))
		}
	}
}

func TestManyProofsOfOneAnchor(t *testing.T) {
	w := newWorld(t, 2)
	for _, tenant := range w.tenants {
		w.record(tenant, 11)
	}
	w.anchor()
	w.record(w.tenants[0], 2)
	w.anchor()
	a, err := proof.Load(t.Context(), w.reader, w.bucket, 2)
	require.NoError(t, err)
	chain, err := a.Chain(t.Context(), w.reader, w.tenants[0])
	require.NoError(t, err)
	require.EqualValues(t, 13, chain.Length())
	checker := anchor.NewChecker(w.keys)
	require.NoError(t, w.reader.Unbound(t.Context(), func(tx pgx.Tx) error {
		rows, err := tx.Query(t.Context(), `select chain_position, canonical, prev_hash from audit_events where tenant_id = $1`, w.tenants[0])
		require.NoError(t, err)
		var position uint64
		var text, prev string
		_, err = pgx.ForEachRow(rows, []any{&position, &text, &prev}, func() error {
			file, err := chain.Prove(position, []byte(text), prev)
			require.NoError(t, err)
			checked, err := checker.Check(file)
			require.NoError(t, err)
			require.Equal(t, position, checked.Position)
			_, err = chain.Prove(position%13+1, []byte(text), prev)
			require.ErrorIs(t, err, proof.ErrDamaged, "another event's position")
			return nil
		})
		return err
	}))
	_, err = chain.Prove(14, nil, "")
	require.ErrorContains(t, err, "does not cover")
	_, err = a.Chain(t.Context(), w.reader, ident.New())
	requireType(t, fault.NotFound, err)
}

func TestWhatCannotBeProven(t *testing.T) {
	w := newWorld(t, 1)
	anchored := w.record(w.tenants[0], 1)[0]
	w.anchor()
	waiting := w.record(w.tenants[0], 1)[0]
	build := func(id string) error {
		_, err := proof.Build(t.Context(), w.reader, w.bucket, id)
		return err
	}
	requireType(t, fault.ValidationError, build("no id"))
	requireType(t, fault.NotFound, build(ident.New()))
	requireType(t, fault.ValidationError, build(waiting))
	w.drain()
	requireType(t, fault.ValidationError, build(waiting))
	require.NoError(t, build(anchored))

	root := w.db.Superuser(t)
	for _, damage := range []string{
		`update audit_anchors set object_sha256 = repeat('0', 64)`,
		`update audit_events set event_hash = repeat('0', 64) where chain_position = 1`,
		`delete from audit_events where chain_position = 1`,
	} {
		_, err := root.Exec(t.Context(), `set session_replication_role = replica; begin; `+damage)
		require.NoError(t, err)
		_, err = root.Exec(t.Context(), `commit`)
		require.NoError(t, err)
		err = build(anchored)
		require.Error(t, err)
		if !strings.HasPrefix(damage, "delete") {
			require.ErrorIs(t, err, proof.ErrDamaged)
		}
	}
}

func requireType(t *testing.T, want fault.Type, err error) {
	t.Helper()
	var f *fault.Error
	require.ErrorAs(t, err, &f)
	require.Equal(t, want, f.Type)
}
