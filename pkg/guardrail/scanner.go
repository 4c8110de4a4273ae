package guardrail

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// scanner finds what rules look for in a text that arrives piece by piece, and gives out what may be shown. All that it does follows from the
// characters so far, never from how they were cut into pieces.
type scanner struct {
	views   [2]view // as patterns and as phrases see the text
	text    []byte  // from base on
	base    int     // in bytes of the whole text, as all places here
	read    int     // up to where the machines have read
	given   int     // up to where the text is given out, or masked
	regions []region
	form    []rune

	spans []Span // of what was given out, and of what was blocked
	why   reasons
	block *region // the first match of a rule that blocks
	ended bool    // all that may be shown of a blocked text is given out
}

// view is the text in one form, with the machines that read it.
type view struct {
	form   func(to []rune, r rune) []rune
	joined bool                         // spaces are joined
	begin  [utf8.RuneSelf + 1][]*sought // whose matches can begin with this character; the last: with any other one
	active []*sought                    // in the middle of something
	before rune                         // the last character
	end    int                          // behind it
	quiet  int                          // how many characters were nothing since
}

// sought is a rule with its machine.
type sought struct {
	rule    *rule
	machine *machine
	active  bool
}

// region is what is masked as one.
type region struct {
	start, end int
	rule       *rule             // what it is named after
	found      int               // the end of that rule's first match here
	open       func(r rune) bool // what belongs to it if it follows; nil: nothing
	shown      bool              // its placeholder is given out
}

func newScanner(rules []*rule, stage Stage) *scanner {
	s := &scanner{views: [2]view{{form: plain, before: none}, {form: folded, before: none, joined: true}}}
	for _, r := range rules {
		if !slices.Contains(r.stages, stage) {
			continue
		}
		v := &s.views[0]
		if r.phrase {
			v = &s.views[1]
		}
		m := &sought{rule: r, machine: &machine{program: r.program}}
		for c := range r.ascii {
			if r.ascii[c] {
				v.begin[c] = append(v.begin[c], m)
			}
		}
		if r.other {
			v.begin[utf8.RuneSelf] = append(v.begin[utf8.RuneSelf], m)
		}
	}
	return s
}

// again makes s ready for another text.
func (s *scanner) again() {
	for i := range s.views {
		v := &s.views[i]
		s.interrupt(v)
		v.before, v.end, v.quiet = none, 0, 0
	}
	*s = scanner{views: s.views, text: s.text[:0], form: s.form}
}

// write reads on.
func (s *scanner) write(delta string) {
	s.text = append(s.text, delta...)
	for s.block == nil {
		rest := s.text[s.read-s.base:]
		if !utf8.FullRune(rest) {
			return
		}
		s.next(utf8.DecodeRune(rest))
	}
}

// finish says that the text is over.
func (s *scanner) finish() {
	for s.block == nil && s.read < s.base+len(s.text) { // a character that broke off
		s.next(utf8.DecodeRune(s.text[s.read-s.base:]))
	}
	for i := range s.views {
		if s.block == nil {
			s.step(&s.views[i], none, s.read)
		}
	}
	s.close()
}

// next takes one character of size bytes.
func (s *scanner) next(r rune, size int) {
	at := s.read
	s.read += size
	for i := range s.views {
		v := &s.views[i]
		quiet := true
		s.form = v.form(s.form[:0], r)
		for _, form := range s.form {
			if v.joined && form == ' ' && (v.before == ' ' || v.before == none) {
				continue
			}
			if s.step(v, form, at); s.block != nil {
				return
			}
			v.end, v.before, v.quiet, quiet = s.read, form, 0, false
		}
		if quiet {
			if v.quiet++; v.quiet > maxQuiet {
				s.interrupt(v)
			}
		}
	}
}

// interrupt ends whatever is under way: what comes next does not belong to it.
func (s *scanner) interrupt(v *view) {
	for _, m := range v.active {
		m.machine.stop()
		m.active = false
	}
	v.active = v.active[:0]
	if !v.joined {
		s.close()
		if v.before != none {
			v.before = 0
		}
	}
}

// close ends all tails.
func (s *scanner) close() {
	for i := range s.regions {
		s.regions[i].open = nil
	}
}

// step takes one character of a view, which is at this place.
func (s *scanner) step(v *view, r rune, at int) {
	if r != none {
		for _, m := range v.begin[min(r, utf8.RuneSelf)] {
			if !m.active {
				m.active = true
				v.active = append(v.active, m)
			}
		}
	}
	if len(v.active) > 0 {
		p := place{flags: between(v.before, r), before: v.before, after: r, at: at}
		for _, m := range v.active {
			for _, start := range m.machine.read(p) {
				s.hit(m.rule, start, v.end)
			}
		}
		v.active = slices.DeleteFunc(v.active, func(m *sought) bool {
			m.active = len(m.machine.waiting) > 0
			return !m.active
		})
	}
	if v.joined || r == none {
		return
	}
	for i := range s.regions {
		if g := &s.regions[i]; g.open != nil && g.end == v.end && g.open(r) {
			g.end = s.read
		} else {
			g.open = nil
		}
	}
}

// hit is a match of a rule.
func (s *scanner) hit(r *rule, start, end int) {
	if r.check != nil && !r.check(plainText(string(s.text[start-s.base:end-s.base]))) {
		return
	}
	g := region{start: start, end: end, rule: r, found: end, open: r.tail}
	if r.action == Block {
		if s.block == nil || g.before(*s.block) {
			s.block = &g
		}
		return
	}
	// Regions are in the order of their beginnings, and disjoint: those that the new one overlaps are the last ones.
	first := len(s.regions)
	for first > 0 && s.regions[first-1].end > start {
		first--
	}
	for _, old := range s.regions[first:] {
		if old.before(g) {
			g.rule, g.found = old.rule, old.found
		}
		if g.open == nil || old.end > g.end {
			g.open = old.open
		}
		g.start, g.end, g.shown = min(g.start, old.start), max(g.end, old.end), g.shown || old.shown
	}
	s.regions = append(s.regions[:first], g)
}

// before reports whether what is masked as one is named after g, not h: after what begins first, or else ends first, or else is said first.
func (g region) before(h region) bool {
	return cmp.Or(cmp.Compare(g.start, h.start), cmp.Compare(g.found, h.found), cmp.Compare(g.rule.order, h.rule.order)) < 0
}

// certain is up to where the text is decided: a match that is not found yet begins behind it, or at it, or within a region; and the first place at which
// a match that is not found yet can begin of a rule that blocks.
func (s *scanner) certain() (to, blocks int) {
	to, blocks = s.read, math.MaxInt
	for i := range s.views {
		for _, m := range s.views[i].active {
			first := m.machine.first()
			if to = min(to, first); m.rule.action == Block {
				blocks = min(blocks, first)
			}
		}
	}
	for _, g := range s.regions {
		if g.open != nil {
			to = min(to, g.start)
		}
	}
	return to, blocks
}

// take gives out what may be shown by now, and was not given out before.
func (s *scanner) take() string {
	if s.ended {
		return ""
	}
	var out strings.Builder
	to, end := s.certain()
	if s.block != nil {
		end = s.block.start
	}
	for len(s.regions) > 0 && s.regions[0].start <= to && s.regions[0].start < end {
		g := &s.regions[0]
		if !g.shown {
			g.shown = true
			s.give(&out, g.start)
			out.WriteString(placeholder(g.rule.kind))
		}
		s.given = g.end
		if g.end > to && s.block == nil {
			break // it may still grow
		}
		s.found(*g)
		s.regions = s.regions[1:]
	}
	if len(s.regions) == 0 || s.block != nil {
		s.give(&out, min(to, end))
	} else if !s.regions[0].shown {
		s.give(&out, min(to, s.regions[0].start))
	}
	if s.block != nil {
		s.found(*s.block)
		s.ended = true
		return out.String()
	}
	s.forget()
	return out.String()
}

// give gives the text out, up to end.
func (s *scanner) give(out *strings.Builder, end int) {
	if end > s.given {
		out.Write(s.text[s.given-s.base : end-s.base])
		s.given = end
	}
}

// forget drops the text that nobody will ask for.
func (s *scanner) forget() {
	from := s.given
	for i := range s.views {
		for _, m := range s.views[i].active {
			if m.rule.check != nil {
				from = min(from, m.machine.first())
			}
		}
	}
	if from > s.base {
		s.text, s.base = s.text[from-s.base:], from
	}
}

// found keeps the record of a region.
func (s *scanner) found(g region) {
	s.spans = append(s.spans, Span{Kind: g.rule.kind, Start: g.start, End: g.end})
	s.why.add(g.rule.why)
}
