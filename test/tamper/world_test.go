package tamper_test

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/audit/ledger"
	"github.com/agentplatform/agentplatform/pkg/audit/outbox"
	"github.com/agentplatform/agentplatform/pkg/audit/verify"
	"github.com/agentplatform/agentplatform/pkg/audit/witness/witnesstest"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/sign"
)

const (
	origin    = "tamper.test/audit"
	interval  = 15 * time.Minute
	retention = 400 * 24 * time.Hour
)

// emission is the key of the emission MAC.
var emission = []byte("the database never sees this key")

// laboratory is what all worlds stand on.
type laboratory struct {
	*store
	signer sign.Signer
}

func newLaboratory(t *testing.T) *laboratory {
	t.Helper()
	signer, err := sign.File(filepath.Join(t.TempDir(), "key.pem"))
	require.NoError(t, err)
	return &laboratory{newStore(t), signer}
}

// keys are the log's.
func (l *laboratory) keys(t testing.TB) []anchor.Verifier {
	t.Helper()
	public, err := l.signer.Public(t.Context())
	require.NoError(t, err)
	key, err := anchor.LogVerifier(origin, public)
	require.NoError(t, err)
	return []anchor.Verifier{key}
}

// world is one deployment's database and bucket, with what its people know.
type world struct {
	*laboratory
	seed    uint64
	random  *rand.Rand
	clock   *clock // of everything in it
	db      *pgtest.DB
	bucket  string
	exports string
	witness *witnesstest.Witness
	follow  string // the witness's URL
	tenants []string
	newest  string               // the tenant that no anchor has yet
	kept    []verify.Receipt     // by those who emitted
	before  *pgtest.DB           // a backup of the database, older than the last anchor
	known   map[string]bool      // objects that bear their time
	lengths map[string]int       // of the chains, when nobody had touched them
	headers func(*anchor.Header) // what a forger does to every anchor's header; nil: nothing
}

// clock is a time that only tests move, and that goes on a little whenever somebody acts by it.
type clock struct{ microseconds atomic.Int64 }

func newClock(at time.Time) *clock {
	c := &clock{}
	c.set(at)
	return c
}

func (c *clock) set(at time.Time) { c.microseconds.Store(at.UnixMicro()) }
func (c *clock) read() time.Time  { return time.UnixMicro(c.microseconds.Load()).UTC() }
func (c *clock) tick() time.Time  { return time.UnixMicro(c.microseconds.Add(1000)).UTC() }

func (w *world) between(low, high int) int { return low + w.random.IntN(high-low+1) }

// one reports true once in n times.
func (w *world) one(n int) bool { return w.random.IntN(n) == 0 }

// ledger is the writer, new after each restart.
func (w *world) ledger(t testing.TB, with ...func(*ledger.Config)) *ledger.Ledger {
	t.Helper()
	c := ledger.Config{DB: w.db.Open(t, w.db.LedgerURL), Bucket: w.as(root, w.bucket), Signer: w.signer, Key: emission, Origin: origin,
		Interval: interval, Retention: retention, BeaconEvery: -1, WitnessURL: w.follow, WitnessKey: w.witness.Key().String(), Now: w.clock.tick}
	for _, f := range with {
		f(&c)
	}
	return ledger.New(c)
}

// record does n audited acts of a tenant.
func (w *world) record(t testing.TB, tenant string, n int) {
	t.Helper()
	box := outbox.New(outbox.Config{Key: emission})
	for range n {
		e := w.event(tenant)
		require.NoError(t, box.InTenant(t.Context(), w.db.App, tenant, func(tx pgx.Tx) error {
			if w.one(2) { // most acts are the platform's own, and nobody keeps a receipt
				return box.Record(t.Context(), tx, e)
			}
			e.EventID = ident.New()
			receipt, _, err := box.RecordOnce(t.Context(), tx, e, make([]byte, sha256.Size))
			w.kept = append(w.kept, verify.Receipt{EventID: e.EventID, Receipt: receipt})
			return err
		}))
	}
}

var names = []string{"Ada", "Grace", "Edsger \u2013 \"the second\"", "Łukasz", "名前", "a\\b", "😀 \ufffd"}

// event is some act, at this moment.
func (w *world) event(tenant string) audit.Event {
	id, name := ident.New(), names[w.random.IntN(len(names))]
	e := audit.Event{TenantID: tenant, OccurredAt: ident.Time{Time: w.clock.tick()}, Actor: ident.New(), ActorType: audit.ActorUser, Source: audit.SourceGraphQL,
		RequestID: fmt.Sprintf("request-%d", w.random.Uint32())}
	switch w.random.IntN(5) {
	case 0:
		e.Type, e.Payload = audit.AgentCreated, map[string]any{"agentId": id, "name": name, "templateId": ident.New()}
		e.AgentID, e.ResourceType, e.ResourceID = id, "agent", id
	case 1:
		e.Type, e.Payload = audit.SignInFailed, map[string]any{"email": "who@example.test", "method": "password", "reason": name, "ip": "192.0.2.7", "password": "never recorded"}
	case 2:
		e.Type, e.Payload = audit.ExportInitiated, map[string]any{"exportJobId": id, "format": "CSV", "filter": map[string]any{"limit": w.between(1, 1000), "type": []any{name}}, "requestedBy": id}
	case 3:
		e.Type, e.Payload = audit.AgentSkillsChanged, map[string]any{"agentId": id, "addedSkills": []any{name, "search"}, "removedSkills": []any{}}
		e.ActorType, e.Source, e.ThreadID = audit.ActorAgent, audit.SourceRuntime, ident.New()
	default:
		e.Type, e.Payload = audit.UserDeleted, map[string]any{"userId": id, "reason": name}
	}
	return e
}

// verify is what an auditor runs: with the reader's credentials, a minute after the last thing that happened.
func (w *world) verify(t testing.TB, with ...func(*verify.Config)) verify.Report {
	t.Helper()
	now := w.clock.read().Add(time.Minute)
	c := verify.Config{Bucket: w.as(reader, w.bucket), Database: w.db.ReaderURL, Keys: w.keys(t), Workers: 2, Now: func() time.Time { return now }}
	for _, f := range with {
		f(&c)
	}
	report, err := verify.Run(t.Context(), c)
	require.NoError(t, err, "%+v", report)
	return report
}
