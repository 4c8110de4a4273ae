package ledger_test

import (
	"bytes"
	"encoding/hex"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/audit/merkle"
	"github.com/agentplatform/agentplatform/pkg/audit/verify"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/object"
)

// link is a row of a chain.
type link struct {
	TenantID, EventID, EventHash, PrevHash, Actor, EventType, Canonical string
	Position, Cadence                                                   int64
	OccurredAt, RecordedAt                                              time.Time
	MAC                                                                 []byte
}

func (l link) hash() merkle.Hash {
	raw, _ := hex.DecodeString(l.EventHash)
	return merkle.Hash(raw)
}

// consistent recomputes everything that database and bucket hold from what was recorded: nothing lost, nothing doubled, every chain, beacon and anchor right. It trusts
// nothing of this package. Everything recorded must be drained.
func (w *world) consistent() {
	w.t.Helper()
	chains := w.chains()
	w.objects()
	w.beacons(chains)
	w.anchors(chains)
	w.verified()
}

// verified asks the verifier, whose word is what counts outside.
func (w *world) verified() {
	w.t.Helper()
	report, err := verify.Run(w.t.Context(), verify.Config{Bucket: w.bucket, Database: w.db.SuperURL, Keys: w.verifiers(), AllowEmpty: true, EmissionKey: emissionKey, Now: w.now,
		ClockTolerance: -1})
	require.NoError(w.t, err)
	found := slices.DeleteFunc(report.Findings, func(f verify.Finding) bool { return f.Class == verify.Quarantined })
	require.Empty(w.t, found)
	require.Equal(w.t, ask[int](w, `select count(*) from audit_outbox where state = 'quarantined'`), len(report.Findings)-len(found))
}

func (w *world) chains() map[string][]link {
	t := w.t
	t.Helper()
	rows, err := w.root.Query(t.Context(), `select e.tenant_id::text, e.event_id::text, e.event_hash, e.prev_hash, e.actor, e.event_type, e.canonical, e.chain_position as position, e.cadence,
		e.occurred_at, e.recorded_at, o.mac from audit_events e left join audit_outbox o on o.event_id = e.event_id and o.tenant_id = e.tenant_id and o.state = 'drained' and o.envelope is null
		order by e.tenant_id, e.chain_position`)
	require.NoError(t, err)
	all, err := pgx.CollectRows(rows, pgx.RowToStructByName[link])
	require.NoError(t, err)
	chains := map[string][]link{}
	for _, l := range all {
		chain := chains[l.TenantID]
		prev, before, cadence := audit.Genesis, time.Time{}, int64(1)
		if len(chain) > 0 {
			last := chain[len(chain)-1]
			prev, before, cadence = last.EventHash, last.RecordedAt, last.Cadence
		}
		require.EqualValues(t, len(chain)+1, l.Position)
		require.Equal(t, prev, l.PrevHash)
		require.Equal(t, audit.Hash([]byte(l.Canonical), prev), l.EventHash)
		require.False(t, l.RecordedAt.Before(before), "recorded_at goes back")
		require.GreaterOrEqual(t, l.Cadence, cadence)
		e, err := audit.ParseEnvelope([]byte(l.Canonical))
		require.NoError(t, err)
		require.Equal(t, []string{l.EventID, l.TenantID, l.Actor, l.EventType}, []string{e.EventID, e.TenantID, e.Actor, string(e.Type)})
		require.True(t, e.OccurredAt.Equal(l.OccurredAt) && e.RecordedAt.Equal(l.RecordedAt))
		pending, err := audit.Pending(nil, []byte(l.Canonical))
		require.NoError(t, err)
		require.Equal(t, audit.MAC(emissionKey, pending), l.MAC, "event %s", l.EventID)
		chains[l.TenantID] = append(chain, l)
	}
	for tenant, ids := range w.recorded {
		var chained []string
		for _, l := range chains[tenant] {
			chained = append(chained, l.EventID)
		}
		require.Equal(t, ids, chained, "what was recorded, in its order, each once")
	}
	require.Len(t, chains, len(w.recorded))
	require.Zero(t, ask[int](w, `select count(*) from audit_outbox where state = 'pending'`))
	require.EqualValues(t, len(all), ask[int](w, `select count(*) from audit_outbox where state = 'drained'`))
	require.EqualValues(t, len(chains), ask[int](w, `select count(*) from audit_heads h join audit_events e on e.tenant_id = h.tenant_id and e.chain_position = h.length and e.event_hash = h.event_hash
		and e.recorded_at = h.recorded_at where not exists (select from audit_events n where n.tenant_id = h.tenant_id and n.chain_position > h.length)`))
	return chains
}

// objects holds every object to its lock: one version, COMPLIANCE, for as long as it was promised.
func (w *world) objects() {
	t := w.t
	t.Helper()
	seen := map[string]bool{}
	for v, err := range w.bucket.Versions(t.Context(), "", "") {
		require.NoError(t, err)
		require.False(t, v.DeleteMarker)
		require.False(t, seen[v.Key], "two versions of %s", v.Key)
		seen[v.Key] = true
		mode, until, err := w.bucket.Lock(t.Context(), v.Key, v.ID)
		require.NoError(t, err)
		require.Equal(t, object.Compliance, mode, v.Key)
		require.True(t, until.After(time.Now().Add(retention-time.Hour)), v.Key)
	}
}

func (w *world) keys(prefix string) (keys []string) {
	w.t.Helper()
	for o, err := range w.bucket.List(w.t.Context(), prefix, "") {
		require.NoError(w.t, err)
		keys = append(keys, o.Key)
	}
	return keys
}

func (w *world) object(key string) []byte {
	w.t.Helper()
	text, err := w.bucket.Get(w.t.Context(), key, 1<<30)
	require.NoError(w.t, err)
	return text
}

func (w *world) verifiers() []anchor.Verifier {
	w.t.Helper()
	public, err := w.signer.Public(w.t.Context())
	require.NoError(w.t, err)
	v, err := anchor.LogVerifier(origin, public)
	require.NoError(w.t, err)
	return []anchor.Verifier{v}
}

func (w *world) beacons(chains map[string][]link) {
	t := w.t
	t.Helper()
	told, previous := map[string]uint64{}, anchor.Genesis
	keys := w.keys(anchor.BeaconPrefix)
	for i, key := range keys {
		require.Equal(t, anchor.BeaconKey(uint64(i+1)), key)
		text := w.object(key)
		b, err := anchor.OpenBeacon(text, w.verifiers())
		require.NoError(t, err)
		require.EqualValues(t, i+1, b.Number)
		require.Equal(t, previous, b.Previous)
		for _, h := range b.Tenants {
			require.Greater(t, h.Length, told[h.TenantID])
			require.Equal(t, chains[h.TenantID][h.Length-1].hash(), h.EventHash)
			told[h.TenantID] = h.Length
		}
		previous = anchor.SHA256(text)
	}
	for tenant, chain := range chains {
		require.EqualValues(t, len(chain), told[tenant], "no beacon tells of the newest event of %s", tenant)
	}
	require.EqualValues(t, len(keys), ask[int](w, `select beacon_number from audit_ledger`))
	require.Equal(t, previous, ask[string](w, `select beacon_sha256 from audit_ledger`))
	require.Zero(t, ask[int](w, `select count(*) from audit_heads where beaconed <> length`))
}

func (w *world) anchors(chains map[string][]link) {
	t := w.t
	t.Helper()
	var log merkle.Range
	var logs []string
	previous, last := anchor.Genesis, anchor.Header{}
	keys := w.keys(anchor.Prefix)
	for i, key := range keys {
		n := uint64(i + 1)
		require.Equal(t, anchor.Key(n), key)
		text := w.object(key)
		a, err := anchor.Parse(text)
		require.NoError(t, err)
		require.Equal(t, previous, a.Header.Previous)
		log.Append(anchor.LogLeaf(a.HeaderSHA256))
		c, _, err := anchor.OpenCheckpoint(a.Checkpoint, w.verifiers())
		require.NoError(t, err)
		require.Equal(t, anchor.Checkpoint{Origin: origin, Size: n, Root: log.Root()}, c)
		if n > 1 {
			from := a.Header.Window.From
			if a.Header.Backfill != nil {
				from = a.Header.Backfill.From
			}
			require.True(t, from.Equal(last.Window.To.Time), "a gap before %s", key)
			require.True(t, last.RecordedAt.Before(a.Header.RecordedAt.Time))
		}
		require.Equal(t, headsAt(chains, int64(n), a.Header.RecordedAt), a.Tenants)
		for tenant, chain := range chains {
			if lines := linesOf(chain, int64(n)); len(lines) > 0 {
				logs = append(logs, anchor.EventsKey(tenant, n))
				require.True(t, bytes.Equal(lines, w.object(anchor.EventsKey(tenant, n))))
			}
		}
		require.Equal(t, anchor.SHA256(text), ask[string](w, `select object_sha256 from audit_anchors where number = $1`, n))
		previous, last = anchor.SHA256(text), a.Header
	}
	slices.Sort(logs)
	require.Equal(t, logs, w.keys(anchor.EventPrefix))
	require.EqualValues(t, len(keys), ask[int](w, `select count(*) from audit_anchors where anchored_at is not null`))
	require.EqualValues(t, len(keys), ask[int](w, `select open_cadence - 1 from audit_ledger`))
	if len(keys) > 0 {
		state, err := log.MarshalBinary()
		require.NoError(t, err)
		require.Equal(t, state, ask[[]byte](w, `select log_tree from audit_anchors order by number desc limit 1`))
	}
}

func headsAt(chains map[string][]link, cadence int64, closed ident.Time) (tenants []anchor.Tenant) {
	for tenant, chain := range chains {
		var tree merkle.Range
		at := anchor.Tenant{TenantID: tenant}
		for _, l := range chain {
			if l.Cadence > cadence {
				break
			}
			tree.Append(anchor.EventLeaf(l.hash()))
			at.Length, at.EventHash, at.TreeRoot = uint64(l.Position), l.hash(), tree.Root()
			if l.RecordedAt.After(closed.Time) {
				return nil
			}
		}
		if at.Length > 0 {
			tenants = append(tenants, at)
		}
	}
	slices.SortFunc(tenants, func(a, b anchor.Tenant) int { return bytes.Compare([]byte(a.TenantID), []byte(b.TenantID)) })
	return tenants
}

func linesOf(chain []link, cadence int64) (lines []byte) {
	for _, l := range chain {
		if l.Cadence == cadence {
			lines = append(append(lines, l.Canonical...), '\n')
		}
	}
	return lines
}
