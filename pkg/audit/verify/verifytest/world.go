// Package verifytest makes logs to verify, in tests: a database and a bucket of their own, with the real writer, and a clock that the test turns.
package verifytest

import (
	"context"
	"fmt"
	"path/filepath"
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

// What every World is named and made with.
const (
	Name     = "audit" // of the bucket
	Origin   = "verify.test/audit"
	Interval = 15 * time.Minute // of a cadence
)

// Emission is the key of the emission MAC.
func Emission() []byte { return []byte("the emission key of the verifier's tests") }

// World is a log in a database and a bucket of its own. Its package's TestMain is pgtest.Main.
type World struct {
	T       testing.TB
	DB      *pgtest.DB
	Server  *bucket.Server
	Dir     string         // of Server
	Bucket  *object.Bucket // as who may write
	Signer  sign.Signer
	Box     *outbox.Outbox
	Ledger  *ledger.Ledger
	Offset  time.Duration // of the world's time from the real one
	Tenants []string
	Kept    []verify.Receipt // of all events
}

// Empty has tenants, and nothing of them. It is a day ago.
func Empty(t testing.TB, tenants int) *World {
	t.Helper()
	w := &World{T: t, DB: pgtest.New(t), Dir: t.TempDir(), Box: outbox.New(outbox.Config{Key: Emission()}), Offset: -24 * time.Hour}
	var err error
	w.Server, err = bucket.Start(t.Context(), bucket.Config{Dir: w.Dir, RootKey: "root", RootSecret: "root-secret", ReaderKey: "reader", ReaderSecret: "reader-secret",
		Buckets: []bucket.Bucket{{Name: Name, ObjectLock: true, Versioning: true}}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Server.Stop(context.Background())) })
	w.Bucket = w.As("root")
	w.Signer, err = sign.File(filepath.Join(t.TempDir(), "key.pem"))
	require.NoError(t, err)
	for i := range tenants {
		w.Tenants = append(w.Tenants, w.DB.Tenant(t, fmt.Sprintf("tenant-%d", i)))
	}
	w.Ledger = ledger.New(ledger.Config{DB: w.DB.Open(t, w.DB.LedgerURL), Bucket: w.Bucket, Signer: w.Signer, Key: Emission(), Origin: Origin, Interval: Interval, BeaconEvery: -1, Now: w.Now})
	return w
}

// As is the bucket for one of the keys of the server.
func (w *World) As(who string) *object.Bucket {
	return object.New(object.Config{Region: "us-east-1", Endpoint: w.Server.Endpoint(), AccessKey: who, Secret: who + "-secret", PathStyle: true}).In(Name)
}

// Populated has three tenants, four anchors, and events that are only told of by beacons: of each tenant two a cadence, and one that is pending.
func Populated(t testing.TB) *World {
	t.Helper()
	w := Empty(t, 3)
	for range 4 {
		w.Record(2)
		w.Anchor()
	}
	w.Record(1)
	return w
}

// Now is the world's time.
func (w *World) Now() time.Time { return time.Now().Add(w.Offset).UTC().Truncate(time.Microsecond) }

// Record does n audited acts of each tenant, and drains them: a beacon tells of them.
func (w *World) Record(n int, tenants ...string) {
	w.T.Helper()
	if tenants == nil {
		tenants = w.Tenants
	}
	for i := range n {
		for _, tenant := range tenants {
			w.Emit(audit.Event{TenantID: tenant, Payload: map[string]any{"agentId": ident.New(), "name": fmt.Sprintf("Ada %d \"ü\"", i), "secret": "not listed"}})
		}
	}
	w.Drain()
}

// Emit records one act; of the event only tenant and payload are wanted. It gives the event's id.
func (w *World) Emit(e audit.Event) string {
	w.T.Helper()
	e.EventID, e.OccurredAt = ident.New(), ident.Time{Time: w.Now()}
	e.Actor, e.ActorType, e.Source, e.Type = "tester", audit.ActorSystem, audit.SourceSystem, audit.AgentCreated
	require.NoError(w.T, w.Box.InTenant(w.T.Context(), w.DB.App, e.TenantID, func(tx pgx.Tx) error {
		receipt, _, err := w.Box.RecordOnce(w.T.Context(), tx, e, make([]byte, 32))
		w.Kept = append(w.Kept, verify.Receipt{EventID: e.EventID, Receipt: receipt})
		return err
	}))
	return e.EventID
}

// Drain moves what was recorded into the chains.
func (w *World) Drain() {
	w.T.Helper()
	require.NoError(w.T, w.Ledger.Drain(w.T.Context()))
}

// Anchor lets a cadence end and anchors it.
func (w *World) Anchor() {
	w.T.Helper()
	w.Offset += Interval
	require.NoError(w.T, w.Ledger.PublishAnchor(w.T.Context()))
}

// Keys are the log's.
func (w *World) Keys() []anchor.Verifier {
	w.T.Helper()
	public, err := w.Signer.Public(w.T.Context())
	require.NoError(w.T, err)
	key, err := anchor.LogVerifier(Origin, public)
	require.NoError(w.T, err)
	return []anchor.Verifier{key}
}
