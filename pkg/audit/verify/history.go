package verify

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"time"

	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/audit/merkle"
)

// tenant is what the anchors say of a tenant's chain.
type tenant struct {
	id    uuid
	now   entry  // at the newest anchor
	base  entry  // at the anchor before the first that is checked; zero: none
	chain digest // of all entries since base
	heads digest // the same without the side tree's root
}

// entry is where a chain stood at an anchor.
type entry struct {
	length     uint64
	hash, root merkle.Hash
}

// digest is a running hash over entries. Two are equal exactly when the entries are: that is how the millions of heads in anchors are compared with the
// chains in the memory of one.
type digest [sha256.Size]byte

func (d *digest) add(cadence uint64, e entry, withRoot bool) {
	var b [32 + 8 + 8 + 32 + 32]byte
	n := copy(b[:], d[:])
	binary.BigEndian.PutUint64(b[n:], cadence)
	binary.BigEndian.PutUint64(b[n+8:], e.length)
	n += 16
	n += copy(b[n:], e.hash[:])
	if withRoot {
		n += copy(b[n:], e.root[:])
	}
	*d = sha256.Sum256(b[:n])
}

// cadence is what is kept of an anchor.
type cadence struct {
	recorded       micros
	modified       time.Time
	sha256, header merkle.Hash
	windowTo       time.Time
	usable         bool   // it was read, and is an anchor: chains are held to it
	covered        uint64 // the first usable anchor from this one on; 0: none
}

// history is what the anchors say, from the one after lo to hi. Anchor lo is the base: what came before it is held to it and not looked at again.
type history struct {
	lo, hi   uint64
	base     cadence
	cadences []cadence // of lo+1 … hi
	tenants  []tenant  // ascending by id
	spare    []tenant  // to merge into
	log      merkle.Range
	last     *LastAnchor
	length   time.Duration // of a cadence, as the newest anchor says
	origin   string
}

// at is the cadence n, nil if it is not among those that are checked.
func (h *history) at(n uint64) *cadence {
	if n == h.lo && n > 0 {
		return &h.base
	}
	if n <= h.lo || n > h.hi {
		return nil
	}
	return &h.cadences[n-h.lo-1]
}

// covering is the first usable anchor that covers events of cadence n; 0: none.
func (h *history) covering(n uint64) uint64 {
	if n = max(n, h.lo+1); n > h.hi {
		return 0
	}
	return h.cadences[n-h.lo-1].covered
}

// cover finds for each cadence the anchor that covers it, when all were read: chains ask for every step, and anchors may be missing by the thousand.
func (h *history) cover() {
	next := uint64(0)
	for i := len(h.cadences) - 1; i >= 0; i-- {
		if h.cadences[i].usable {
			next = h.lo + 1 + uint64(i)
		}
		h.cadences[i].covered = next
	}
}

// tenant is what the anchors say of this one, nil if nothing.
func (h *history) tenant(id uuid) *tenant {
	i, found := slices.BinarySearchFunc(h.tenants, id, func(t tenant, id uuid) int { return bytes.Compare(t.id[:], id[:]) })
	if !found {
		return nil
	}
	return &h.tenants[i]
}

// from is the index of the first tenant that does not come before id.
func (h *history) from(id uuid) int {
	i, _ := slices.BinarySearchFunc(h.tenants, id, func(t tenant, id uuid) int { return bytes.Compare(t.id[:], id[:]) })
	return i
}

// advance takes the next anchor's list over. shrunk is called for tenants whose chain did not only grow.
func (h *history) advance(n uint64, list []anchor.Tenant, shrunk func(id uuid, before, now entry)) {
	old, merged := h.tenants, slices.Grow(h.spare[:0], len(list))
	i := 0
	for _, t := range list {
		id, _ := parseUUID(t.TenantID)
		for ; i < len(old) && bytes.Compare(old[i].id[:], id[:]) < 0; i++ {
			shrunk(old[i].id, old[i].now, entry{})
			merged = append(merged, old[i])
		}
		state := tenant{id: id}
		if i < len(old) && old[i].id == id {
			state = old[i]
			i++
		}
		e := entry{t.Length, t.EventHash, t.TreeRoot}
		switch {
		case e == state.now:
		case e.length <= state.now.length:
			shrunk(id, state.now, e)
		default:
			state.now = e
			state.chain.add(n, e, true)
			state.heads.add(n, e, false)
		}
		merged = append(merged, state)
	}
	for ; i < len(old); i++ {
		shrunk(old[i].id, old[i].now, entry{})
		merged = append(merged, old[i])
	}
	h.tenants, h.spare = merged, old
}

// rebase makes where the chains are now the base.
func (h *history) rebase() {
	for i := range h.tenants {
		t := &h.tenants[i]
		t.base, t.chain, t.heads = t.now, digest{}, digest{}
	}
}
