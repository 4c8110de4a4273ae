package verify_test

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/audit/verify"
)

// Whoever may add one object, or set one row, must not be able to keep the verifier from its end.

func TestKeysWithNumbersOutOfAllBounds(t *testing.T) {
	w := populated(t)
	w.put("anchors/cadence-999999999999.json", "{}")
	w.put("anchors/cadence-000000131077.json", "{}")
	w.put("heads/999999999999.json", "{}")
	w.put("events/"+w.Tenants[0]+"/cadence-999999999999.ndjson", "{}\n")
	r := w.verify()
	requireFound(t, r, verify.Finding{Class: verify.ObjectUnexpected, Key: "anchors/cadence-999999999999.json"})
	requireFound(t, r, verify.Finding{Class: verify.ObjectUnexpected, Key: "anchors/cadence-000000131077.json"})
	requireFound(t, r, verify.Finding{Class: verify.BeaconInvalid, Key: "heads/999999999999.json"})
	require.EqualValues(t, 4, r.LastAnchor.Number)
	require.False(t, r.Has(verify.AnchorMissing))

	// The farthest that is taken.
	w.put("anchors/cadence-000000131076.json", "{}")
	r = w.verify()
	requireFound(t, r, verify.Finding{Class: verify.AnchorMissing, Cadence: 5})
	requireFound(t, r, verify.Finding{Class: verify.AnchorInvalid, Cadence: 131076})
}

// Objects that the platform cannot have written are not read into memory.
func TestObjectsOutOfAllBounds(t *testing.T) {
	w := populated(t)
	require.NoError(t, os.Truncate(w.file(anchor.Key(4)), 1<<30+1))
	require.NoError(t, os.Truncate(w.file(anchor.BeaconKey(2)), 64<<20+1))
	r := w.verify()
	requireFound(t, r, verify.Finding{Class: verify.ObjectChanged, Key: anchor.Key(4)})
	requireFound(t, r, verify.Finding{Class: verify.ObjectChanged, Key: anchor.BeaconKey(2)})
	requireFound(t, r, verify.Finding{Class: verify.AnchorInvalid, Cadence: 4})
}

// unconstrained drops whatever the schema wants of the tables.
func (w *world) unconstrained() {
	w.T.Helper()
	for _, table := range tables {
		drop := ask[string](w, `select coalesce('alter table ' || conrelid::regclass || ' ' || string_agg('drop constraint ' || quote_ident(conname), ', '), '') from pg_constraint
where conrelid = $1::regclass and contype = 'c' group by conrelid union all select '' limit 1`, table)
		w.super(drop)
		for _, column := range []string{"open_cadence", "beacon_number", "length", "event_hash", "recorded_at", "window_to"} {
			if ask[bool](w, `select exists (select from information_schema.columns where table_schema = 'public' and table_name = $1 and column_name = $2 and is_nullable = 'NO')`, table, column) {
				w.super("alter table " + table + " alter column " + column + " drop not null")
			}
		}
	}
}

func TestNumbersAndTimesThatTheDatabaseMakesUp(t *testing.T) {
	w := populated(t)
	w.unconstrained()
	w.backup()
	a, ninth := w.Tenants[0], w.event(w.Tenants[0], 9)
	for sql, want := range map[string]verify.Finding{
		`update audit_ledger set open_cadence = -1`:                                                               {Class: verify.AnchorDatabase},
		`update audit_ledger set open_cadence = null`:                                                             {Class: verify.AnchorDatabase},
		`update audit_ledger set beacon_number = -1`:                                                              {Class: verify.HeadDatabase},
		`delete from audit_ledger`:                                                                                {Class: verify.HeadDatabase},
		`update audit_heads set length = -1 where tenant_id = '` + a + `'`:                                        {Class: verify.HeadDatabase, TenantID: a},
		`update audit_heads set length = null, event_hash = null where tenant_id = '` + a + `'`:                   {Class: verify.HeadDatabase, TenantID: a},
		`update audit_anchored_heads set length = -1 where tenant_id = '` + a + `'`:                               {Class: verify.HeadDatabase, TenantID: a},
		`update audit_anchored_heads set length = null where tenant_id = '` + a + `'`:                             {Class: verify.HeadDatabase, TenantID: a},
		`update audit_anchors set number = -4 where number = 4`:                                                   {Class: verify.AnchorDatabase, Cadence: 4},
		`update audit_anchors set number = -number`:                                                               {Class: verify.AnchorDatabase},
		`update audit_anchors set recorded_at = 'infinity' where number = 4`:                                      {Class: verify.AnchorDatabase, Cadence: 4},
		`update audit_anchors set window_to = null where number = 4`:                                              {Class: verify.AnchorDatabase, Cadence: 4},
		`update audit_events set chain_position = -9 where event_id = '` + ninth + `'`:                            {Class: verify.Fork, EventID: ninth},
		`update audit_events set recorded_at = '-infinity' where event_id = '` + ninth + `'`:                      {Class: verify.ColumnMismatch, EventID: ninth},
		`update audit_outbox set state = 'quarantined', created_at = 'infinity' where event_id = '` + ninth + `'`: {Class: verify.Quarantined, EventID: ninth},
		`update audit_outbox set state = 'pending', created_at = '-infinity' where event_id = '` + ninth + `'`:    {Class: verify.NotEmitted, EventID: ninth},
		// One that would have to be counted up to.
		fmt.Sprintf(`update audit_anchors set number = %d where number = 4`, math.MaxInt64): {Class: verify.AnchorDatabase, Cadence: math.MaxInt64},
	} {
		t.Run(sql, func(t *testing.T) {
			defer func(outer testing.TB) { w.T = outer }(w.T)
			w.T = t
			w.super(sql)
			defer w.restore()
			requireFound(t, w.verify(func(c *verify.Config) { c.Receipts, c.EmissionKey = w.Kept, emission }), want)
		})
	}
	requireClean(t, w.verify())
}

// What a beacon of somebody else says of the chains is nothing that later ones are held to.
func TestABeaconOfAStrangerSaysNothing(t *testing.T) {
	w := populated(t)
	newest := ask[int](w, `select beacon_number from audit_ledger`)
	w.rebeacon(uint64(newest-1), w.stranger(), func(b *anchor.Beacon) {
		b.Cadence = 77
		for i := range b.Tenants {
			b.Tenants[i].Length = 1 << 40
		}
	})
	r := w.verify()
	requireFound(t, r, verify.Finding{Class: verify.BeaconSignature, Key: anchor.BeaconKey(uint64(newest - 1))})
	for _, f := range r.Findings {
		require.True(t, f.Class == verify.BeaconSignature || f.Class == verify.BeaconChain && strings.Contains(f.Detail, "previous_sha256"), list(r))
	}
}

// A chain is held beside a log some positions at a time.
func TestRowsAreKeptInParts(t *testing.T) {
	w := populated(t)
	for _, atOnce := range []uint64{1, 2, 4, 9, 100} {
		found, most, err := verify.Kept(t.Context(), w.DB.ReaderURL, w.Tenants[0], atOnce, 12)
		require.NoError(t, err)
		require.Equal(t, []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9}, found)
		require.LessOrEqual(t, uint64(most), atOnce)
	}
}
