package anchor_test

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/audit/merkle"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/stretchr/testify/require"
)

// large is an anchor over 1,000 tenants of 1,000 events each, after n−1 others. One tenant's events are real.
type large struct {
	events  [][]byte
	prev    []string
	tree    merkle.Tree
	tenants []anchor.Tenant
	index   uint64
	proof   merkle.Tree
	log     []merkle.Hash
	anchor  anchor.Anchor
	keys    []anchor.Verifier
}

func newLarge(t testing.TB, n uint64) *large {
	t.Helper()
	l, k := &large{index: 500}, testKey(t, "log")
	l.keys = []anchor.Verifier{k.verifier(t, origin)}
	const tenant = "0190a1b2-c3d4-7e5f-8000-000000000500"
	prev, head := anchor.Genesis, merkle.Hash{}
	for i := range 1000 {
		text := fmt.Appendf(nil, `{"actor":"0190a1b2-c3d4-7e5f-a000-000000000001","actor_type":"user","event_id":"0190a1b2-c3d4-7e5f-9000-%012d","event_type":"user.created","occurred_at":"2026-03-01T12:00:00.000000Z","payload":{"email":"somebody.with.a.name@example.com","role":"member","userId":"0190a1b2-c3d4-7e5f-b000-000000000001"},"recorded_at":"2026-03-01T12:00:00.000000Z","request_id":"0190a1b2-c3d4-7e5f-c000-000000000001","resource_id":"0190a1b2-c3d4-7e5f-b000-000000000001","resource_type":"user","schema_version":1,"source":"graphql","tenant_id":%q}`, i, tenant)
		head = anchor.EventHash(text, prev)
		l.events, l.prev = append(l.events, text), append(l.prev, prev)
		l.tree.Append(anchor.EventLeaf(head))
		prev = fmt.Sprintf("%x", head)
	}
	for i := range 1000 {
		x := anchor.Tenant{TenantID: fmt.Sprintf("0190a1b2-c3d4-7e5f-8000-%012d", i), Length: 1000, EventHash: counted("head", i), TreeRoot: counted("tree", i)}
		if x.TenantID == tenant {
			x.EventHash, x.TreeRoot = head, l.tree.Root()
		}
		l.tenants = append(l.tenants, x)
	}
	_, _, leaves, err := anchor.Roots(l.tenants)
	require.NoError(t, err)
	for _, leaf := range leaves {
		l.proof.Append(leaf)
	}
	var before merkle.Range
	for i := range n - 1 {
		before.Append(counted("log", int(i)))
	}
	to := start.Add(time.Duration(n) * 15 * time.Minute)
	h := anchor.Header{Cadence: 900, Number: n, Previous: fmt.Sprintf("%x", counted("anchor", 0)), RecordedAt: ident.Time{Time: to.Add(123456 * time.Microsecond)},
		Window: anchor.Window{From: ident.Time{Time: to.Add(-15 * time.Minute)}, To: ident.Time{Time: to}}}
	object, err := anchor.Seal(h, l.tenants, before, func(size uint64, root merkle.Hash) (string, error) {
		return anchor.SignCheckpoint(t.Context(), anchor.Checkpoint{Origin: origin, Size: size, Root: root}, k)
	})
	require.NoError(t, err)
	l.anchor, err = anchor.Parse(object)
	require.NoError(t, err)
	l.log = anchor.LogPath(before)
	return l
}

func counted(what string, i int) merkle.Hash {
	return merkle.LeafHash([]byte(what), binary.BigEndian.AppendUint64(nil, uint64(i)))
}

func (l *large) prove(position uint64) ([]byte, error) {
	return anchor.Proof{Event: l.events[position-1], Prev: l.prev[position-1], Position: position, Length: 1000, Head: l.tenants[l.index].EventHash, Index: l.index,
		EventPath: l.tree.Inclusion(position-1, 1000), TenantPath: l.proof.Inclusion(l.index, 1000), LogPath: l.log,
		Header: l.anchor.Header, Checkpoint: l.anchor.Checkpoint}.Build()
}

// TestProofSize: at most 2,048 bytes beyond the event for a million events of a thousand tenants, a day and a year after the first anchor; and at most 2,304
// where the path in the log is longest, while no later anchor is there to be chosen (package proof).
func TestProofSize(t *testing.T) {
	for n, most := range map[uint64]int{96: 2048, 35_000: 2048, 8_192: 2304, 32_768: 2304, 65_536: 2304, 65_537: 2048} {
		l := newLarge(t, n)
		file, err := l.prove(500)
		require.NoError(t, err)
		_, err = anchor.Check(file, l.keys)
		require.NoError(t, err)
		t.Logf("log of %d: %d bytes beyond an event of %d", n, len(file)-len(l.events[499]), len(l.events[499]))
		require.LessOrEqual(t, len(file)-len(l.events[499]), most)
	}
}

// BenchmarkProof builds and checks one proof an operation, of the events of one tenant in turn.
func BenchmarkProof(b *testing.B) {
	l := newLarge(b, 96)
	bench := func(name string, check func([]byte) error) {
		b.Run(name, func(b *testing.B) {
			b.RunParallel(func(pb *testing.PB) {
				for i := uint64(0); pb.Next(); i++ {
					file, err := l.prove(i%1000 + 1)
					if err == nil {
						err = check(file)
					}
					if err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "proofs/s")
		})
	}
	checker := anchor.NewChecker(l.keys)
	bench("of-one-anchor", func(file []byte) error { _, err := checker.Check(file); return err })
	bench("each-signature", func(file []byte) error { _, err := anchor.Check(file, l.keys); return err })
}

// BenchmarkSeal is an anchor of 10,000 tenants, from their trees' roots to the signed object.
func BenchmarkSeal(b *testing.B) {
	k := testKey(b, "log")
	var tenants []anchor.Tenant
	for i := range 10_000 {
		tenants = append(tenants, anchor.Tenant{TenantID: fmt.Sprintf("0190a1b2-c3d4-7e5f-8000-%012d", i), Length: 1, EventHash: counted("head", i), TreeRoot: counted("tree", i)})
	}
	h := anchor.Header{Cadence: 900, Number: 1, Previous: anchor.Genesis, RecordedAt: at(15), Window: anchor.Window{From: quarter(0), To: quarter(1)}}
	for b.Loop() {
		object, err := anchor.Seal(h, tenants, merkle.Range{}, func(size uint64, root merkle.Hash) (string, error) {
			return anchor.SignCheckpoint(b.Context(), anchor.Checkpoint{Origin: origin, Size: size, Root: root}, k)
		})
		require.NoError(b, err)
		_, err = anchor.Parse(object)
		require.NoError(b, err)
	}
}
