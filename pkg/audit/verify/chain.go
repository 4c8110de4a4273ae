package verify

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"

	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/audit/merkle"
)

// noted is how many findings of one tenant's chain are listed: one edit can break everything after it.
const noted = 20

// walk reads the rows of a range of tenants, ordered by tenant and position, and holds each to everything that is known of it. One goroutine's.
type walk struct {
	*run
	h     *history
	ids   *idRun
	heads func(id uuid, cadence uint64, head entry) // told of each head at an anchor; may be nil

	next, until int      // indexes of the tenants of h in the range that were not seen yet
	listed      []resume // or these, those that were not seen yet
	row         row
	link        link // of the tenant whose rows are being read
	begun       bool
	text        []byte // what is hashed
	seen        uint64 // events that the progress does not know of yet
	ended       []ended
	asking      bool // there are so many doubts that they are to be settled
}

// link is where a chain has been read to.
type link struct {
	id       uuid
	name     string  // id as texts have it
	known    *tenant // nil: no anchor knows it
	base     entry
	length   uint64
	hash     [64]byte // of the last event, hexadecimal, as its column has it
	prev     []byte   // of the last event
	tree     merkle.Range
	first    micros // recorded_at of the first event
	recorded micros // of the last
	cadence  uint64 // of the last
	chain    digest
	findings int
	saved    *saved // from an earlier run, until its last event was found again
	tip      *saved // the same, until its last unanchored event was found again
	anchored saved  // as of the newest anchor that covers any of it
}

// ended is what is kept of a chain that was read to its end.
type ended struct {
	id       uuid
	length   uint64
	hash     [64]byte
	first    micros // when its first event was recorded; of a chain that was read from elsewhere, the latest time there is
	diverged bool   // from the anchors: where, is found out later
	anchored saved
}

// bad notes a finding about the row that is being read.
func (w *walk) bad(class Class, format string, args ...any) {
	if w.link.findings++; w.link.findings > noted {
		w.found.dropped()
		return
	}
	w.found.add(Finding{Class: class, TenantID: w.link.id.String(), EventID: w.row.event.String(), Position: uint64(max(w.row.position, 0)),
		Cadence: uint64(max(w.row.cadence, 0)), Detail: fmt.Sprintf(format, args...)})
}

// take is the visitor of the copied rows.
func (w *walk) take(fields [][]byte) error {
	r := &w.row
	if err := r.read(fields); err != nil {
		return err
	}
	if !w.begun || r.tenant != w.link.id {
		w.finish()
		w.start(r.tenant)
	}
	l := &w.link
	if l.saved != nil {
		w.again()
		return nil
	}
	w.count()
	if w.ids != nil {
		if err := w.ids.add(r.event); err != nil {
			return err
		}
	}
	if !w.place() {
		return nil
	}
	if uint64(r.position) <= l.base.length || r.text == nil {
		w.old()
		return nil
	}
	w.hashed()
	w.envelope()
	w.times()
	w.append()
	return nil
}

func (w *walk) count() {
	if w.seen++; w.seen == 1024 {
		w.tally.events.Add(w.seen)
		w.seen = 0
	}
}

// start begins a tenant. The tenants of the anchors that were passed over have no rows.
func (w *walk) start(id uuid) {
	w.passed(id)
	w.begun = true
	w.link = link{id: id, name: id.String(), prev: w.link.prev[:0], known: w.h.tenant(id), first: math.MaxInt64, recorded: math.MinInt64}
	l := &w.link
	if l.known != nil {
		l.base = l.known.base
	}
	if s := w.saved(id); s != nil {
		if s.Tip.Length > s.Length {
			l.tip = s
		}
		if s.Length > 0 {
			l.saved, l.anchored = s, *s
			l.length, l.tree, l.recorded, l.cadence = s.Length, s.tree.Clone(), micros(s.Recorded), s.Cadence
			copy(l.hash[:], s.Hash)
		}
	}
}

// passed notes the tenants before id that should have rows, and have none.
func (w *walk) passed(id uuid) {
	before := func(t uuid) bool { return bytes.Compare(t[:], id[:]) < 0 }
	for ; w.next < w.until && before(w.h.tenants[w.next].id); w.next++ {
		w.gone(w.h.tenants[w.next].id)
	}
	if w.next < w.until && w.h.tenants[w.next].id == id {
		w.next++
	}
	for ; len(w.listed) > 0 && before(w.listed[0].id); w.listed = w.listed[1:] {
		w.gone(w.listed[0].id)
	}
	if len(w.listed) > 0 && w.listed[0].id == id {
		w.listed = w.listed[1:]
	}
}

// rest notes those behind the last row.
func (w *walk) rest() {
	for ; w.next < w.until; w.next++ {
		w.gone(w.h.tenants[w.next].id)
	}
	for ; len(w.listed) > 0; w.listed = w.listed[1:] {
		w.gone(w.listed[0].id)
	}
}

// gone notes a tenant without rows.
func (w *walk) gone(id uuid) {
	if t := w.h.tenant(id); t != nil {
		w.found.add(Finding{Class: TenantMissing, TenantID: id.String(), Position: 1, Detail: fmt.Sprintf("the anchors have %d events of it, the database has none", t.now.length)})
		w.ended = append(w.ended, ended{id: id, first: math.MaxInt64, diverged: t.now != t.base})
	}
	if s := w.saved(id); s != nil {
		w.found.add(Finding{Class: HistoryRewritten, TenantID: id.String(), Position: 1, Detail: fmt.Sprintf("an earlier run read %d events, there are none", s.Tip.Length)})
	}
}

// again takes the row that an earlier run read last, which must not have changed.
func (w *walk) again() {
	l, r := &w.link, &w.row
	w.text = append(append(w.text[:0], r.text...), r.prev...)
	sum := sha256.Sum256(w.text)
	switch {
	case uint64(r.position) != l.length:
		w.bad(HistoryRewritten, "an earlier run read an event at position %d, which is not there any more", l.length)
	case !bytes.Equal(r.hash, l.hash[:]) || hex.EncodeToString(sum[:]) != string(l.hash[:]):
		w.bad(HistoryRewritten, "an earlier run read an event with the hash %s here", l.hash[:])
	}
	l.prev = append(l.prev[:0], r.prev...)
	l.saved = nil
}

// place holds the row to the one before it; false: it is none of the chain.
func (w *walk) place() bool {
	l, r := &w.link, &w.row
	switch at := int64(l.length) + 1; {
	case r.position < at:
		w.bad(Fork, "position %d is taken twice", r.position)
		return false
	case r.position > at:
		missing := Finding{Class: PositionGap, TenantID: l.id.String(), Position: uint64(at), Detail: fmt.Sprintf("positions %d to %d are missing", at, r.position-1)}
		w.found.add(missing)
		w.turn(uint64(max(r.cadence, 0)))
		l.length = uint64(r.position - 1)
	case at == 1 && string(r.prev) != audit.Genesis:
		w.bad(LinkBroken, "the first event's prev_hash is %s, not %s", r.prev, audit.Genesis)
	case at > 1 && !bytes.Equal(r.prev, l.hash[:]):
		if bytes.Equal(r.prev, l.prev) {
			w.bad(Fork, "prev_hash %s is that of the event before, too", r.prev)
		} else {
			w.bad(LinkBroken, "prev_hash is %s, the event before has the hash %s", r.prev, l.hash[:])
		}
	}
	return true
}

// old takes a row from before the base, of which only the hash is looked at.
func (w *walk) old() {
	l, r := &w.link, &w.row
	if uint64(r.position) > l.base.length {
		w.bad(CadenceOrder, "says it is of cadence %d, but %s has only %d events of the tenant", r.cadence, anchor.CadenceID(w.h.lo), l.base.length)
	}
	w.grow()
	if uint64(r.position) != l.base.length {
		return
	}
	if hash, _ := unhex(r.hash); hash != l.base.hash {
		w.bad(HeadMismatch, "the hash at position %d is %s, but %s has %x", r.position, r.hash, anchor.CadenceID(w.h.lo), l.base.hash)
	} else if root := l.tree.Root(); root != l.base.root {
		w.bad(TreeMismatch, "the hashes up to position %d do not make the side tree of %s", r.position, anchor.CadenceID(w.h.lo))
	}
}

// hashed computes the hash from the text.
func (w *walk) hashed() {
	r := &w.row
	w.text = append(append(w.text[:0], r.text...), r.prev...)
	sum := sha256.Sum256(w.text)
	var digits [64]byte
	hex.Encode(digits[:], sum[:])
	if !bytes.Equal(digits[:], r.hash) {
		w.bad(HashMismatch, "the stored text and prev_hash have the hash %s, event_hash is %s", digits[:], r.hash)
	}
}

// append puts the row at the end of the chain.
func (w *walk) append() {
	l, r := &w.link, &w.row
	w.turn(uint64(max(r.cadence, 0)))
	w.grow()
	if uint64(r.cadence) > w.h.hi {
		w.tally.pending.Add(1)
	}
	if l.tip != nil && l.tip.Tip.Length == l.length {
		if string(r.hash) != l.tip.Tip.Hash {
			w.bad(HistoryRewritten, "an earlier run read an event with the hash %s here", l.tip.Tip.Hash)
		}
		l.tip = nil
	}
}

func (w *walk) grow() {
	l, r := &w.link, &w.row
	hash, ok := unhex(r.hash)
	if !ok {
		w.bad(HashMismatch, "event_hash is not a hash")
	}
	l.tree.Append(anchor.EventLeaf(hash))
	if l.length = uint64(r.position); l.length == 1 {
		l.first = r.recorded
	}
	copy(l.hash[:], r.hash)
	l.prev = append(l.prev[:0], r.prev...)
	l.recorded, l.cadence = max(l.recorded, r.recorded), max(l.cadence, uint64(max(r.cadence, 0)))
}

// turn notes the head at the anchor that covers the chain so far, before an event of another cadence comes.
func (w *walk) turn(to uint64) {
	l := &w.link
	if to <= l.cadence || l.length <= l.base.length {
		return
	}
	n := w.h.covering(l.cadence)
	if n == 0 || n >= to {
		return
	}
	head := entry{length: l.length, root: l.tree.Root()}
	head.hash, _ = unhex(l.hash[:])
	l.chain.add(n, head, true)
	if w.heads != nil {
		w.heads(l.id, n, head)
	}
	if w.cfg.State != "" {
		l.anchored = saved{Length: l.length, Hash: string(l.hash[:]), Recorded: int64(l.recorded), Cadence: l.cadence, tree: l.tree.Clone()}
	}
}

// finish ends the tenant whose rows were read.
func (w *walk) finish() {
	if !w.begun {
		return
	}
	l := &w.link
	w.turn(math.MaxUint64)
	e := ended{id: l.id, length: l.length, hash: l.hash, first: l.first, anchored: l.anchored}
	e.anchored.Tip = tip{l.length, string(l.hash[:])}
	var want digest
	if l.known != nil {
		want = l.known.chain
		if l.length < l.known.now.length {
			w.found.add(Finding{Class: ChainTruncated, TenantID: l.id.String(), Position: l.length + 1,
				Detail: fmt.Sprintf("the chain ends at position %d, the anchors have %d events", l.length, l.known.now.length)})
		}
	}
	e.diverged = l.chain != want
	if l.tip != nil {
		w.found.add(Finding{Class: HistoryRewritten, TenantID: l.id.String(), Position: l.length + 1,
			Detail: fmt.Sprintf("an earlier run read %d events, there are %d", l.tip.Tip.Length, l.length)})
	}
	w.ended = append(w.ended, e)
	w.begun = false
}

func unhex(digits []byte) (h merkle.Hash, ok bool) {
	if len(digits) != 2*len(h) {
		return h, false
	}
	_, err := hex.Decode(h[:], digits)
	return h, err == nil
}
