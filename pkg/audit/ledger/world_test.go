package ledger_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/audit/ledger"
	"github.com/agentplatform/agentplatform/pkg/audit/outbox"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/local/bucket"
	"github.com/agentplatform/agentplatform/pkg/object"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/sign"
)

func TestMain(m *testing.M) {
	if orders := os.Getenv(victimOrders); orders != "" {
		victim(orders) // the process that a crash test kills
		return
	}
	pgtest.Main(m)
}

const (
	origin    = "ledger.test/audit"
	interval  = 15 * time.Minute
	retention = 400 * 24 * time.Hour
)

var emissionKey = []byte("the emission key of the ledger's tests")

// world is a ledger with a database and a bucket of its own.
type world struct {
	t        testing.TB
	db       *pgtest.DB
	root     *pgx.Conn    // as the superuser, whom nothing binds
	writer   *postgres.DB // as the ledger
	tenants  []string
	endpoint string // of the S3 server
	name     string // of the bucket
	bucket   *object.Bucket
	keyFile  string
	signer   sign.Signer
	box      *outbox.Outbox
	offset   time.Duration // of the ledger's clock from the machine's

	mu       sync.Mutex
	recorded map[string][]string // event ids by tenant, in the order of their commits
}

func newWorld(t testing.TB, tenants int) *world {
	t.Helper()
	w := &world{t: t, db: pgtest.New(t), keyFile: filepath.Join(t.TempDir(), "key.pem"), box: outbox.New(outbox.Config{Key: emissionKey}), recorded: map[string][]string{}}
	server, err := bucket.Start(t.Context(), bucket.Config{Dir: pgtest.Folder(t), RootKey: "root", RootSecret: "root-secret", ReaderKey: "reader", ReaderSecret: "reader-secret",
		Buckets: []bucket.Bucket{writeOnce("audit"), writeOnce("audit-2"), writeOnce("audit-3")}})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.NoError(t, server.Stop(ctx))
	})
	w.endpoint = server.Endpoint()
	w.in("audit")
	w.open(w.db)
	w.signer, err = sign.File(w.keyFile)
	require.NoError(t, err)
	for i := range tenants {
		w.tenants = append(w.tenants, w.db.Tenant(t, fmt.Sprintf("tenant-%d", i)))
	}
	return w
}

func writeOnce(name string) bucket.Bucket {
	return bucket.Bucket{Name: name, ObjectLock: true, Versioning: true}
}

func store(endpoint string) *object.Store {
	return object.New(object.Config{Region: "us-east-1", Endpoint: endpoint, AccessKey: "root", Secret: "root-secret", PathStyle: true})
}

// in makes the ledger use that bucket from now on.
func (w *world) in(name string) { w.name, w.bucket = name, store(w.endpoint).In(name) }

// open makes the ledger use that database from now on.
func (w *world) open(db *pgtest.DB) {
	w.t.Helper()
	w.db, w.root, w.writer = db, db.Superuser(w.t), db.Open(w.t, db.LedgerURL)
	w.super("set session_replication_role = replica")
}

// withoutLocks goes back to an earlier database, and to copies of all objects, of which those that it does not know are not locked.
func (w *world) withoutLocks(earlier *pgtest.DB, name string, known []string) {
	w.t.Helper()
	keys, from := w.keys(""), w.bucket
	w.open(earlier)
	w.in(name)
	for _, key := range keys {
		text, err := from.Get(w.t.Context(), key, 1<<30)
		require.NoError(w.t, err)
		var how object.PutOptions
		if slices.Contains(known, key) {
			how.RetainUntil = w.now().Add(retention)
		}
		_, err = w.bucket.Put(w.t.Context(), key, bytes.NewReader(text), how)
		require.NoError(w.t, err)
	}
}

// now is the ledger's clock, cut to what is stored.
func (w *world) now() time.Time { return time.Now().Add(w.offset).UTC().Truncate(time.Microsecond) }

// pass lets cadences end.
func (w *world) pass(d time.Duration) { w.offset += d }

func (w *world) ledger(change ...func(*ledger.Config)) *ledger.Ledger {
	w.t.Helper()
	c := ledger.Config{DB: w.writer, Bucket: w.bucket, Signer: w.signer, Key: emissionKey, Origin: origin,
		Interval: interval, Retention: retention, BeaconEvery: -1, Now: w.now}
	for _, f := range change {
		f(&c)
	}
	return ledger.New(c)
}

// event is one that is recorded.
func event(tenantID string) audit.Event {
	return audit.Event{EventID: ident.New(), TenantID: tenantID, Actor: "tester", ActorType: audit.ActorSystem, Source: audit.SourceSystem, Type: audit.AgentCreated,
		Payload: map[string]any{"agentId": ident.New(), "name": "Ada \"the first\" ü", "secret": "not listed"}}
}

// record does n audited acts of a tenant.
func (w *world) record(tenantID string, n int) {
	w.t.Helper()
	for range n {
		w.recordEvent(event(tenantID))
	}
}

func (w *world) recordEvent(e audit.Event) {
	w.t.Helper()
	require.NoError(w.t, w.box.InTenant(w.t.Context(), w.db.App, e.TenantID, func(tx pgx.Tx) error { return w.box.Record(w.t.Context(), tx, e) }))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.recorded[e.TenantID] = append(w.recorded[e.TenantID], e.EventID)
}

func (w *world) recordAll(n int) {
	w.t.Helper()
	for _, tenant := range w.tenants {
		w.record(tenant, n)
	}
}

// forge puts a row into the outbox that the platform's code would not put there, and gives its event's id.
func (w *world) forge(tenantID, eventID, text string, mac []byte) {
	w.t.Helper()
	said := sha256.Sum256([]byte(text))
	w.super(`insert into audit_outbox (tenant_id, event_id, envelope, mac, body_hash) values ($1, $2, $3, $4, $5)`, tenantID, eventID, text, mac, said[:])
}

// super runs a statement that no policy and no trigger binds.
func (w *world) super(sql string, args ...any) {
	w.t.Helper()
	_, err := w.root.Exec(w.t.Context(), sql, args...)
	require.NoError(w.t, err, sql)
}

func ask[T any](w *world, sql string, args ...any) (v T) {
	w.t.Helper()
	require.NoError(w.t, w.root.QueryRow(w.t.Context(), sql, args...).Scan(&v), sql)
	return v
}

func (w *world) drain() {
	w.t.Helper()
	require.NoError(w.t, w.ledger().Drain(w.t.Context()))
}

// anchor lets a cadence end and anchors it.
func (w *world) anchor() {
	w.t.Helper()
	w.pass(interval)
	require.NoError(w.t, w.ledger().PublishAnchor(w.t.Context()))
}
