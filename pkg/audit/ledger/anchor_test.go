package ledger_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/audit/ledger"
	"github.com/agentplatform/agentplatform/pkg/audit/merkle"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/object"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/sign"
)

func (w *world) anchorOf(n uint64) anchor.Anchor {
	w.t.Helper()
	a, err := anchor.Parse(w.object(anchor.Key(n)))
	require.NoError(w.t, err)
	return a
}

func TestAnchors(t *testing.T) {
	w := newWorld(t, 3)
	w.anchor()
	w.consistent()
	require.Equal(t, merkle.Empty(), w.anchorOf(1).Header.MerkleRoot, "an idle platform anchors too")
	require.NoError(t, w.ledger().PublishAnchor(t.Context()))
	require.Len(t, w.keys("anchors/"), 1, "once a window")

	w.record(w.tenants[0], 5)
	w.record(w.tenants[2], 1)
	w.drain()
	w.anchor()
	w.consistent()
	require.Len(t, w.anchorOf(2).Tenants, 2)

	w.record(w.tenants[1], 2)
	w.record(w.tenants[2], 3)
	w.drain()
	w.anchor()
	w.record(w.tenants[0], 1)
	w.drain() // of the next cadence
	w.anchor()
	w.anchor()
	w.consistent()
	for n := uint64(2); n <= 5; n++ {
		require.Nil(t, w.anchorOf(n).Header.Backfill)
	}
	h := w.anchorOf(5).Header
	require.EqualValues(t, 900, h.Cadence)
	require.Zero(t, h.Window.To.Unix()%900)
	require.Equal(t, interval, h.Window.To.Sub(h.Window.From.Time))
	require.EqualValues(t, 12, h.Events)
}

// Windows that nobody closed are covered by the next anchor, which says so.
func TestBackfill(t *testing.T) {
	w := newWorld(t, 1)
	w.anchor()
	w.recordAll(2)
	w.drain()
	w.pass(5 * interval)
	w.anchor()
	w.consistent()
	first, second := w.anchorOf(1).Header, w.anchorOf(2).Header
	require.NotNil(t, second.Backfill)
	require.Equal(t, first.Window.To, second.Backfill.From)
	require.Equal(t, interval, second.Window.To.Sub(second.Window.From.Time))
	require.Equal(t, 5*interval, second.Backfill.To.Sub(second.Backfill.From.Time))

	// Another interval: windows stay without gaps and do not overlap.
	for _, other := range []time.Duration{time.Minute, time.Hour, interval} {
		w.recordAll(1)
		w.drain()
		w.pass(2 * other)
		require.NoError(t, w.ledger(func(c *ledger.Config) { c.Interval = other }).PublishAnchor(t.Context()))
		w.consistent()
	}
}

// While an anchor cannot be made no other cadence is closed: when it can be again there is one that is late and one that covers what was missed, and says so.
func TestOutage(t *testing.T) {
	w := newWorld(t, 2)
	w.anchor()
	for range 3 {
		w.recordAll(2)
		w.drain()
		w.pass(interval)
		require.Equal(t, "anchor: begun", w.killAt("anchor", "anchor: begun"))
	}
	require.Len(t, w.keys("anchors/"), 1)
	require.NoError(t, w.ledger().PublishAnchor(t.Context()))
	w.consistent()
	late, backfill := w.anchorOf(2).Header, w.anchorOf(3).Header
	require.Len(t, w.keys("anchors/"), 3)
	require.Nil(t, late.Backfill)
	require.EqualValues(t, 4, late.Events)
	require.WithinDuration(t, w.now().Add(-2*interval), late.RecordedAt.Time, time.Minute, "when its cadence was closed")
	require.Equal(t, late.Window.To, backfill.Backfill.From)
	require.EqualValues(t, 12, backfill.Events)
	require.WithinDuration(t, w.now(), backfill.RecordedAt.Time, time.Minute, "when it was made, not when its window ended")
}

// Whoever anchors at the same time in other processes: each number is used once.
func TestAnchorsAtOnce(t *testing.T) {
	w := newWorld(t, 4)
	for range 3 {
		w.recordAll(3)
		w.drain()
		w.pass(interval)
		var all errgroup.Group
		for range 4 {
			all.Go(func() error { return w.ledger().PublishAnchor(t.Context()) })
		}
		require.NoError(t, all.Wait())
		w.consistent()
	}
	require.Len(t, w.keys("anchors/"), 3)
}

// Nothing is signed that the rows do not hash to.
func TestDamagedChainIsNotSigned(t *testing.T) {
	w := newWorld(t, 3)
	w.recordAll(2)
	w.drain()
	w.anchor()
	w.recordAll(4)
	w.drain()
	w.pass(interval)
	sound := w.db
	for name, damage := range map[string]string{
		"one bit of a text":   `update audit_events set canonical = overlay(canonical placing 'b' from position('tester' in canonical) for 1) where %`,
		"a hash":              `update audit_events set event_hash = translate(event_hash, '0123456789abcdef', '1234567890abcdef') where %`,
		"a link":              `update audit_events set prev_hash = translate(prev_hash, '0123456789abcdef', '1234567890abcdef') where %`,
		"a row is gone":       `delete from audit_events where %`,
		"an event id":         `update audit_events set event_id = gen_random_uuid() where %`,
		"another tenant's":    `update audit_events set tenant_id = gen_random_uuid() where %`,
		"a later cadence":     `update audit_events set cadence = cadence + 1 where %`,
		"the newest is gone":  `delete from audit_events where tenant_id = $1 and chain_position >= $2`,
		"the head":            `update audit_heads set event_hash = translate(event_hash, '0123456789abcdef', '1234567890abcdef') where tenant_id = $1 and $2 > 0`,
		"the head is shorter": `update audit_heads set length = 1 where tenant_id = $1 and $2 > 0`,
		"no head":             `delete from audit_heads where tenant_id = $1 and $2 > 0`,
	} {
		t.Run(name, func(t *testing.T) {
			w.open(sound.Clone(t))
			w.super(strings.Replace(damage, "%", "tenant_id = $1 and chain_position = $2", 1), w.tenants[1], 4)
			for range 2 { // again and again
				require.ErrorIs(t, w.ledger().PublishAnchor(t.Context()), ledger.ErrDamaged)
			}
			require.Len(t, w.keys("anchors/"), 1)
		})
	}
	w.open(sound)
	require.NoError(t, w.ledger().PublishAnchor(t.Context()))
	w.consistent()
}

// A database that was set back to an earlier state is found by what the bucket knows, and nothing is written over it.
func TestRollback(t *testing.T) {
	w := newWorld(t, 2)
	w.recordAll(2)
	w.drain()
	w.anchor()
	for name, later := range map[string]func(){
		"a beacon knows more":                     func() { w.recordAll(1); w.drain() },
		"an anchor that tells of nothing new":     w.anchor,
		"an anchor, the drainer having gone on":   func() { w.anchor(); w.recordAll(1); w.drain() },
		"two beacons, the second of another head": func() { w.record(w.tenants[1], 1); w.drain(); w.record(w.tenants[0], 1); w.drain() },
	} {
		t.Run(name, func(t *testing.T) {
			earlier := w.db.Clone(w.t)
			w.open(w.db)
			later()
			right, before := w.db, w.keys("")
			w.open(earlier)
			w.forge(w.tenants[0], ident.New(), "{}", []byte("a new event"))
			w.pass(interval)
			for range 2 {
				require.ErrorIs(t, w.ledger().Drain(t.Context()), ledger.ErrRollback)
				require.ErrorIs(t, w.ledger().PublishAnchor(t.Context()), ledger.ErrRollback)
			}
			require.Equal(t, 1, ask[int](w, `select count(*) from audit_outbox where state = 'pending'`))
			require.Equal(t, before, w.keys(""))
			w.open(right)
			w.drain()
			w.anchor()
			w.consistent()
		})
	}
}

// A database that never had a chain, a key that is another's.
func TestForeignBucket(t *testing.T) {
	w := newWorld(t, 1)
	w.recordAll(1)
	w.drain()
	w.anchor()
	other, err := sign.File(filepath.Join(t.TempDir(), "other.pem"))
	require.NoError(t, err)
	w.open(pgtest.New(t))
	require.ErrorIs(t, w.ledger().Drain(t.Context()), ledger.ErrRollback)
	require.ErrorIs(t, w.ledger().PublishAnchor(t.Context()), ledger.ErrRollback)
	l := w.ledger(func(c *ledger.Config) { c.Signer = other })
	require.ErrorIs(t, l.Drain(t.Context()), ledger.ErrForeign)
	require.ErrorIs(t, l.PublishAnchor(t.Context()), ledger.ErrForeign)
}

// Whoever died between an object and its lock left it unlocked: the next one repeats the lock.
func TestLocksAreRepeated(t *testing.T) {
	w := newWorld(t, 2)
	w.recordAll(1)
	require.Equal(t, "beacon: read", w.killAt("drain", "beacon: read"))
	earlier, known := w.db.Clone(t), w.keys("")
	w.open(w.db)
	w.drain()
	w.withoutLocks(earlier, "audit-2", known)
	w.drain()
	w.consistent()

	w.recordAll(2)
	w.drain()
	w.pass(interval)
	require.Equal(t, "anchor: closed", w.killAt("anchor", "anchor: closed"))
	earlier, known = w.db.Clone(t), w.keys("")
	w.open(w.db)
	require.NoError(t, w.ledger().PublishAnchor(t.Context()))
	w.withoutLocks(earlier, "audit-3", known)
	require.NoError(t, w.ledger().PublishAnchor(t.Context()))
	w.consistent()
}

// An object that is there already and says something else stops the ledger.
func TestForeignObjects(t *testing.T) {
	w := newWorld(t, 1)
	w.recordAll(2)
	w.drain()
	w.pass(interval)
	put := func(key, text string) {
		_, err := w.bucket.Put(t.Context(), key, strings.NewReader(text), object.PutOptions{RetainUntil: w.now().Add(retention)})
		require.NoError(t, err)
	}
	put(anchor.EventsKey(w.tenants[0], 1), "{}\n")
	require.ErrorIs(t, w.ledger().PublishAnchor(t.Context()), ledger.ErrForeign)
	require.Empty(t, w.keys("anchors/"))
	put(anchor.Key(1), "{}")
	require.ErrorIs(t, w.ledger().PublishAnchor(t.Context()), ledger.ErrForeign)
	require.ErrorIs(t, w.ledger().Drain(t.Context()), ledger.ErrForeign)

	w.open(pgtest.New(t))
	w.in("audit-2")
	w.tenants = []string{w.db.Tenant(t, "other")}
	put(anchor.BeaconKey(1), "{}")
	w.recordAll(1)
	require.ErrorIs(t, w.ledger().Drain(t.Context()), ledger.ErrForeign)
	require.Equal(t, 1, ask[int](w, `select count(*) from audit_outbox where state = 'pending'`))
}
