package verify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/audit/merkle"
)

// numbered is an anchor in the listing.
type numbered struct {
	stored
	n uint64
}

// mostMissing is how many anchors may be missing of all. A number that is farther beyond those of the others is nobody's anchor: three years of cadences are not lost
// before it, and what a run keeps is sized by the newest number.
const mostMissing = 1 << 17

// listAnchors lists the anchors after a number, and finds the numbers that are left out.
func (r *run) listAnchors(ctx context.Context, after uint64) (list []numbered, err error) {
	start := ""
	if after > 0 {
		start = anchor.Key(after)
	}
	next := after + 1
	for s, err := range r.list(ctx, anchor.Prefix, start) {
		if err != nil {
			return nil, err
		}
		n, ok := anchor.ParseKey(s.key)
		if !ok {
			r.found.add(Finding{Class: ObjectUnexpected, Key: s.key, Detail: "not the key of an anchor"})
			continue
		}
		if n-after-uint64(len(list)) > mostMissing {
			r.found.add(Finding{Class: ObjectUnexpected, Key: s.key, Detail: "its number is far beyond those of all other anchors"})
			continue
		}
		if s.version == "" {
			continue // hidden, and nothing below: the gap is found with the next one
		}
		if n > next {
			r.missing(next, n-1)
		}
		next = n + 1
		list = append(list, numbered{s, n})
	}
	return list, nil
}

func (r *run) missing(from, to uint64) {
	detail := anchor.CadenceID(from) + " is not in the bucket, but a later anchor is"
	if to > from {
		detail = fmt.Sprintf("%s to %s are not in the bucket, but a later anchor is", anchor.CadenceID(from), anchor.CadenceID(to))
	}
	r.found.add(Finding{Class: AnchorMissing, Cadence: from, Detail: detail})
}

// readAnchors reads the anchors of list, which begins with the base if seeded, and builds the history.
func (r *run) readAnchors(ctx context.Context, list []numbered, h *history, seeded bool) error {
	p := &anchorPass{run: r, history: h, seeded: seeded}
	if h.hi > h.lo {
		h.cadences = make([]cadence, h.hi-h.lo)
	}
	err := r.each(ctx, keysOf(list), entire, func(_ context.Context, f fetched) error {
		n, _ := anchor.ParseKey(f.key)
		r.tally.anchors.Add(1)
		p.visit(n, f)
		return nil
	})
	if err == nil {
		p.end()
	}
	return err
}

func keysOf(list []numbered) iter.Seq2[stored, error] {
	return func(yield func(stored, error) bool) {
		for _, s := range list {
			if !yield(s.stored, nil) {
				return
			}
		}
	}
}

// anchorPass holds each anchor to the one before it.
type anchorPass struct {
	*run
	*history
	seeded    bool           // log already holds the base
	unlogged  bool           // an anchor of the log is unknown, so no root can be computed
	before    *anchor.Header // of the anchor before, nil if it could not be read
	beforeN   uint64         // number of the anchor before
	sum       merkle.Hash    // of the anchor before
	late      *Finding       // the anchor before was written long after its time; the next one may excuse it
	lateAt    time.Time      // when it was written
	witnessed uint64         // the newest anchor that all witnesses cosigned
}

func (p *anchorPass) visit(n uint64, f fetched) {
	fail := func(class Class, format string, args ...any) {
		p.found.add(Finding{Class: class, Cadence: n, Key: f.key, Detail: fmt.Sprintf(format, args...)})
	}
	sum := sha256.Sum256(f.body)
	a, err := anchor.Parse(f.body)
	switch {
	case f.gone:
		err = fmt.Errorf("it cannot be read")
	case err == nil && a.Header.Number != n:
		err = fmt.Errorf("it is %s", anchor.CadenceID(a.Header.Number))
	}
	follows := n == p.beforeN+1
	if err != nil {
		fail(AnchorInvalid, "not an anchor: %v", err)
		p.unlogged = true
		p.before, p.beforeN, p.sum = nil, n, sum
		return
	}
	if follows && p.beforeN > 0 && a.Header.Previous != hex.EncodeToString(p.sum[:]) {
		fail(AnchorChain, "previous_anchor_sha256 is %s, but the anchor before it has %x", a.Header.Previous, p.sum)
	}
	if !follows && p.beforeN+1 < n && !(p.seeded && p.beforeN == 0) {
		p.unlogged = true
	}
	if follows && p.before != nil {
		p.times(a.Header, fail)
	}
	p.clock(n, a.Header, f)
	p.checkpoint(n, a, fail)

	isBase := n == p.lo
	if !(isBase && p.seeded) {
		p.advance(n, a.Tenants, func(id uuid, before, now entry) {
			detail := fmt.Sprintf("its chain had %d events at the anchor before, and has %d", before.length, now.length)
			if before.length == now.length {
				detail = fmt.Sprintf("its chain had %d events at the anchor before and has as many, but another head or side tree", before.length)
			}
			p.found.add(Finding{Class: AnchorShrunk, TenantID: id.String(), Cadence: n, Key: f.key, Detail: detail})
		})
	} else {
		for _, t := range a.Tenants {
			id, _ := parseUUID(t.TenantID)
			p.tenants = append(p.tenants, tenant{id: id, now: entry{t.Length, t.EventHash, t.TreeRoot}})
		}
	}
	c := cadence{recorded: microsOf(a.Header.RecordedAt.Time), modified: f.modified, sha256: sum, header: a.HeaderSHA256, windowTo: a.Header.Window.To.Time, usable: true}
	if b := a.Header.Backfill; b != nil && n > p.lo {
		p.found.notice("%s is a backfill: no anchor was made from %s to %s, this one covers it", anchor.CadenceID(n), b.From, b.To)
	}
	switch {
	case isBase:
		p.base = c
		p.rebase()
	case n > p.lo:
		p.cadences[n-p.lo-1] = c
	}
	p.length = time.Duration(a.Header.Cadence) * time.Second
	p.last = &LastAnchor{Number: n, CadenceID: anchor.CadenceID(n), SHA256: hex.EncodeToString(sum[:]), RecordedAt: a.Header.RecordedAt.Time,
		WindowTo: a.Header.Window.To.Time, Checkpoint: a.Checkpoint}
	p.before, p.beforeN, p.sum = &a.Header, n, sum
}

// times holds the windows to each other: no gap that is not a backfill, no overlap, and a clock that only goes forward.
func (p *anchorPass) times(h anchor.Header, fail func(Class, string, ...any)) {
	from := h.Window.From
	if h.Backfill != nil {
		from = h.Backfill.From
	}
	switch until := p.before.Window.To; {
	case from.After(until.Time):
		fail(AnchorWindow, "it covers from %s on, but the anchor before ends at %s: nothing covers what is between", from, until)
	case from.Before(until.Time):
		fail(AnchorWindow, "it covers from %s on, but the anchor before ends at %s: they overlap", from, until)
	}
	if !h.RecordedAt.After(p.before.RecordedAt.Time) {
		fail(AnchorWindow, "recorded at %s, not after the anchor before (%s): the writer's clock went back", h.RecordedAt, p.before.RecordedAt)
	}
	if h.RecordedAt.Before(h.Window.To.Time) {
		fail(AnchorWindow, "recorded at %s, before its window ends (%s)", h.RecordedAt, h.Window.To)
	}
}

// clock holds the writer's time to the storage's. An anchor may be written late, if the key or the bucket could not be reached after its cadence was closed: then
// no other cadence was closed meanwhile, and the next one was only after that. So at most one cadence's time is ever the writer's word alone.
func (p *anchorPass) clock(n uint64, h anchor.Header, f fetched) {
	if p.cfg.ClockTolerance < 0 || n <= p.lo {
		return
	}
	if p.late != nil {
		if h.RecordedAt.Add(p.cfg.ClockTolerance).Before(p.lateAt) {
			p.found.add(*p.late)
		} else {
			p.found.notice("%s: %s; the next one was closed after that and covers the time", p.late.Key, p.late.Detail)
		}
		p.late = nil
	}
	switch ahead := h.RecordedAt.Sub(f.modified); {
	case ahead > p.cfg.ClockTolerance:
		p.found.add(Finding{Class: Clock, Cadence: n, Key: f.key, Detail: fmt.Sprintf("says it was recorded at %s, but the storage had it by %s", h.RecordedAt, stamp(f.modified))})
	case -ahead > p.cfg.ClockTolerance:
		p.late = &Finding{Class: Clock, Cadence: n, Key: f.key, Detail: fmt.Sprintf("says it was recorded at %s, but the storage got it at %s", h.RecordedAt, stamp(f.modified))}
		p.lateAt = f.modified
	}
}

// checkpoint verifies the note: signature, and root of the log up to this anchor.
func (p *anchorPass) checkpoint(n uint64, a anchor.Anchor, fail func(Class, string, ...any)) {
	c, err := anchor.ParseCheckpoint(a.Checkpoint)
	if err != nil { // Parse has read it
		fail(AnchorSignature, "%v", err)
		return
	}
	if len(p.cfg.Keys) > 0 {
		if _, _, err := anchor.OpenCheckpoint(a.Checkpoint, p.cfg.Keys); err != nil {
			fail(AnchorSignature, "not signed by a given key of the log: %v", err)
		}
	}
	if p.cosigned(a.Checkpoint, fail) {
		p.witnessed = n
	}
	switch {
	case p.origin == "":
		p.origin = c.Origin
	case p.origin != c.Origin:
		fail(AnchorSignature, "the checkpoint is of the log %q, the one before of %q", c.Origin, p.origin)
	}
	if !(p.seeded && n == p.lo) && !p.unlogged {
		p.log.Append(anchor.LogLeaf(a.HeaderSHA256))
	}
	if !p.unlogged && (p.log.Size() != n || p.log.Root() != c.Root) {
		fail(AnchorLog, "the checkpoint's root is not of the %d anchors up to this one", n)
		p.unlogged = true // nor will those of later ones be
	}
}

// cosigned reports whether every given witness signed the note.
func (p *anchorPass) cosigned(note string, fail func(Class, string, ...any)) bool {
	if len(p.cfg.WitnessKeys) == 0 {
		return false
	}
	_, signed, err := anchor.Cosignatures(note, note[strings.LastIndex(note, "\n\n")+2:], p.cfg.WitnessKeys)
	if err != nil {
		fail(Unwitnessed, "a given witness's cosignature is wrong: %v", err)
		return false
	}
	return !slices.ContainsFunc(p.cfg.WitnessKeys, func(key anchor.Verifier) bool {
		return !slices.ContainsFunc(signed, func(s anchor.Signed) bool { return s.Name == key.Name() })
	})
}

// end judges what only the newest anchor shows.
func (p *anchorPass) end() {
	p.cover()
	if len(p.cfg.WitnessKeys) > 0 && p.beforeN > p.witnessed+p.cfg.MaxUnwitnessed {
		p.found.add(Finding{Class: Unwitnessed, Cadence: p.witnessed + 1, Detail: fmt.Sprintf("no anchor from %s on (the newest is %s) has the cosignatures of all given witnesses",
			anchor.CadenceID(p.witnessed+1), anchor.CadenceID(p.beforeN))})
	} else if len(p.cfg.WitnessKeys) > 0 && p.beforeN > p.witnessed {
		p.found.notice("%d of the newest anchors are not cosigned yet", p.beforeN-p.witnessed)
	}
	if p.late == nil {
		return
	}
	if p.now.Sub(p.lateAt) > 2*p.length {
		p.found.add(*p.late)
	} else {
		p.found.notice("%s: %s; the next anchor must cover that time", p.late.Key, p.late.Detail)
	}
}
