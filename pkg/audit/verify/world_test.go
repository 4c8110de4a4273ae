package verify_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/audit/verify"
	"github.com/agentplatform/agentplatform/pkg/audit/verify/verifytest"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const (
	origin   = verifytest.Origin
	interval = verifytest.Interval
	name     = verifytest.Name
)

var emission = verifytest.Emission()

// world is a log that the test also cheats with.
type world struct {
	*verifytest.World
	root    *pgx.Conn // as the superuser, whom nothing binds
	touched bool      // the bucket was changed below its server
	hidden  bool      // an index was
}

func empty(t testing.TB, tenants int) *world { return cheating(verifytest.Empty(t, tenants)) }

// populated has three tenants, four anchors, and events that are only told of by beacons: of each tenant two a cadence, and one that is pending.
func populated(t testing.TB) *world { return cheating(verifytest.Populated(t)) }

func cheating(w *verifytest.World) *world { return &world{World: w, root: w.DB.Superuser(w.T)} }

// super runs a statement as the superuser, past the triggers.
func (w *world) super(sql string, args ...any) {
	w.T.Helper()
	_, err := w.root.Exec(w.T.Context(), "set session_replication_role = replica")
	require.NoError(w.T, err)
	_, err = w.root.Exec(w.T.Context(), sql, args...)
	require.NoError(w.T, err, sql)
}

func ask[T any](w *world, sql string, args ...any) (v T) {
	w.T.Helper()
	require.NoError(w.T, w.root.QueryRow(w.T.Context(), sql, args...).Scan(&v), sql)
	return v
}

// event is the id of a tenant's event.
func (w *world) event(tenant string, position int) string {
	w.T.Helper()
	return ask[string](w, `select event_id::text from audit_events where tenant_id = $1 and chain_position = $2`, tenant, position)
}

// config is that of a full run by an auditor with read-only credentials. The world's time is not the storage's.
func (w *world) config() verify.Config {
	return verify.Config{Bucket: w.As("reader"), Database: w.DB.ReaderURL, Keys: w.Keys(), Now: w.Now, ClockTolerance: -1}
}

// verify runs to the end.
func (w *world) verify(change ...func(*verify.Config)) verify.Report {
	w.T.Helper()
	c := w.config()
	for _, f := range change {
		f(&c)
	}
	report, err := verify.Run(w.T.Context(), c)
	require.NoError(w.T, err)
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
