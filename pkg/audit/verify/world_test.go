package verify_test

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
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
	"github.com/agentplatform/agentplatform/pkg/audit/verify"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/local/bucket"
	"github.com/agentplatform/agentplatform/pkg/object"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/sign"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const (
	origin   = "verify.test/audit"
	interval = 15 * time.Minute
	name     = "audit"
)

var emission = []byte("the emission key of the verifier's tests")

// world is a log in a database and a bucket of its own, with a clock that the test turns.
type world struct {
	t       testing.TB
	db      *pgtest.DB
	root    *pgx.Conn // as the superuser, whom nothing binds
	server  *bucket.Server
	dir     string // of the bucket's server
	bucket  *object.Bucket
	signer  sign.Signer
	box     *outbox.Outbox
	offset  time.Duration
	tenants []string
	kept    []verify.Receipt
	touched bool // the bucket was changed below its server
	hidden  bool // an index was
	ledger  *ledger.Ledger
}

func empty(t testing.TB, tenants int) *world {
	t.Helper()
	w := &world{t: t, db: pgtest.New(t), dir: t.TempDir(), box: outbox.New(outbox.Config{Key: emission}), offset: -24 * time.Hour}
	var err error
	w.server, err = bucket.Start(t.Context(), bucket.Config{Dir: w.dir, RootKey: "root", RootSecret: "root-secret", ReaderKey: "reader", ReaderSecret: "reader-secret",
		Buckets: []bucket.Bucket{{Name: name, ObjectLock: true, Versioning: true}}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.server.Stop(context.Background())) })
	w.bucket = w.as("root")
	w.root = w.db.Superuser(t)
	w.signer, err = sign.File(filepath.Join(t.TempDir(), "key.pem"))
	require.NoError(t, err)
	for i := range tenants {
		w.tenants = append(w.tenants, w.db.Tenant(t, fmt.Sprintf("tenant-%d", i)))
	}
	c := ledger.Config{DB: w.db.Open(t, w.db.LedgerURL), Bucket: w.bucket, Signer: w.signer, Key: emission, Origin: origin, Interval: interval, BeaconEvery: -1, Now: w.now}
	w.ledger = ledger.New(c)
	return w
}

// as is the bucket for one of the keys of the server.
func (w *world) as(who string) *object.Bucket {
	return object.New(object.Config{Region: "us-east-1", Endpoint: w.server.Endpoint(), AccessKey: who, Secret: who + "-secret", PathStyle: true}).In(name)
}

// populated has three tenants, four anchors, and events that are only told of by beacons: of each tenant two a cadence, and one that is pending.
func populated(t testing.TB) *world {
	t.Helper()
	w := empty(t, 3)
	for range 4 {
		w.record(2)
		w.anchor()
	}
	w.record(1)
	return w
}

func (w *world) now() time.Time { return time.Now().Add(w.offset).UTC().Truncate(time.Microsecond) }

// record does n audited acts of each tenant, and drains them: a beacon tells of them.
func (w *world) record(n int, tenants ...string) {
	w.t.Helper()
	if tenants == nil {
		tenants = w.tenants
	}
	for i := range n {
		for _, tenant := range tenants {
			w.emit(audit.Event{TenantID: tenant, Payload: map[string]any{"agentId": ident.New(), "name": fmt.Sprintf("Ada %d \"ü\"", i), "secret": "not listed"}})
		}
	}
	w.drain()
}

func (w *world) emit(e audit.Event) string {
	w.t.Helper()
	e.EventID, e.OccurredAt = ident.New(), ident.Time{Time: w.now()}
	e.Actor, e.ActorType, e.Source, e.Type = "tester", audit.ActorSystem, audit.SourceSystem, audit.AgentCreated
	require.NoError(w.t, w.box.InTenant(w.t.Context(), w.db.App, e.TenantID, func(tx pgx.Tx) error {
		receipt, _, err := w.box.RecordOnce(w.t.Context(), tx, e, make([]byte, 32))
		w.kept = append(w.kept, verify.Receipt{EventID: e.EventID, Receipt: receipt})
		return err
	}))
	return e.EventID
}

func (w *world) drain() {
	w.t.Helper()
	require.NoError(w.t, w.ledger.Drain(w.t.Context()))
}

// anchor lets a cadence end and anchors it.
func (w *world) anchor() {
	w.t.Helper()
	w.offset += interval
	require.NoError(w.t, w.ledger.PublishAnchor(w.t.Context()))
}

// super runs a statement as the superuser, past the triggers.
func (w *world) super(sql string, args ...any) {
	w.t.Helper()
	_, err := w.root.Exec(w.t.Context(), "set session_replication_role = replica")
	require.NoError(w.t, err)
	_, err = w.root.Exec(w.t.Context(), sql, args...)
	require.NoError(w.t, err, sql)
}

func ask[T any](w *world, sql string, args ...any) (v T) {
	w.t.Helper()
	require.NoError(w.t, w.root.QueryRow(w.t.Context(), sql, args...).Scan(&v), sql)
	return v
}

// event is the id of a tenant's event.
func (w *world) event(tenant string, position int) string {
	w.t.Helper()
	return ask[string](w, `select event_id::text from audit_events where tenant_id = $1 and chain_position = $2`, tenant, position)
}

func (w *world) keys() []anchor.Verifier {
	w.t.Helper()
	public, err := w.signer.Public(w.t.Context())
	require.NoError(w.t, err)
	key, err := anchor.LogVerifier(origin, public)
	require.NoError(w.t, err)
	return []anchor.Verifier{key}
}

// config is that of a full run by an auditor with read-only credentials. The world's time is not the storage's.
func (w *world) config() verify.Config {
	return verify.Config{Bucket: w.as("reader"), Database: w.db.ReaderURL, Keys: w.keys(), Now: w.now, ClockTolerance: -1}
}

// verify runs to the end.
func (w *world) verify(change ...func(*verify.Config)) verify.Report {
	w.t.Helper()
	c := w.config()
	for _, f := range change {
		f(&c)
	}
	report, err := verify.Run(w.t.Context(), c)
	require.NoError(w.t, err)
	return report
}

// requireFound wants a finding of the class that names this tenant, position and event, if they are given.
func requireFound(t testing.TB, r verify.Report, want verify.Finding) {
	t.Helper()
	for _, f := range r.Findings {
		if f.Class == want.Class && (want.TenantID == "" || f.TenantID == want.TenantID) && (want.Position == 0 || f.Position == want.Position) &&
			(want.EventID == "" || f.EventID == want.EventID) && (want.Cadence == 0 || f.Cadence == want.Cadence) && (want.Key == "" || f.Key == want.Key) {
			return
		}
	}
	require.Failf(t, "not found", "%+v in %s", want, list(r))
}

func list(r verify.Report) string {
	s := ""
	for _, f := range r.Findings {
		s += fmt.Sprintf("\n  %s tenant %s event %s position %d cadence %d key %s: %s", f.Class, f.TenantID, f.EventID, f.Position, f.Cadence, f.Key, f.Detail)
	}
	return s
}

func requireClean(t testing.TB, r verify.Report) {
	t.Helper()
	require.Emptyf(t, r.Findings, "%s", list(r))
	require.True(t, r.OK())
}

// cosignature is a witness's line for the note (c2sp.org/tlog-cosignature).
func cosignature(note string, key anchor.Verifier, private ed25519.PrivateKey) string {
	body := note[:strings.LastIndex(note, "\n\n")+1]
	const at = 1_800_000_000
	sig := ed25519.Sign(private, []byte(fmt.Sprintf("cosignature/v1\ntime %d\n%s", at, body)))
	id, err := hex.DecodeString(strings.Split(key.String(), "+")[1])
	if err != nil {
		panic(err)
	}
	blob := append(binary.BigEndian.AppendUint64(id, at), sig...)
	return "— " + key.Name() + " " + base64.StdEncoding.EncodeToString(blob) + "\n"
}
