package guardrail

import (
	"math"
	"regexp/syntax"
	"slices"
)

// machine runs a program over a text that arrives character by character: Thompson's construction as in Pike's machine, in which each thread also
// knows where its match began. It takes time linear in the text and in the program.
//
// Of two threads at the same instruction the one that began earlier goes on, so each end of a match is found once, with its earliest beginning;
// a program that wants every match keeps them apart by their beginnings.
type machine struct {
	*program
	waiting []thread // have read the last character, and not yet looked at the next one
	ready   []thread // at an instruction that reads a character
	found   []int    // beginnings of the matches that end at this place
	visited []visit  // by instruction
	round   uint32
}

// thread is one way of reading the text as the beginning of a match.
type thread struct {
	pc    uint32
	start int // where its match began, in bytes; unmarked: not yet
}

// visit is the last time that a thread came to an instruction.
type visit struct {
	round uint32
	start int
}

// unmarked is the beginning of a match of which only the surroundings are read.
const unmarked = -1

// place is where a text is read: between two characters.
type place struct {
	flags  syntax.EmptyOp
	before rune // the last character; none: the text begins
	after  rune // the next one; none: the text ends
	at     int  // where the next one is, in bytes
}

// read finds the matches that end at p, then takes the next character. found holds until the next call.
func (m *machine) read(p place) (found []int) {
	if m.visited == nil { // most machines never come so far
		m.visited = make([]visit, len(m.insts))
	}
	m.round++
	m.ready, m.found = m.ready[:0], m.found[:0]
	for _, t := range m.waiting {
		m.follow(t, p)
	}
	m.waiting = m.waiting[:0]
	if m.begins(p.after) && (m.before == nil || !m.before(p.before)) {
		start := p.at
		if m.marked {
			start = unmarked
		}
		m.follow(thread{m.start, start}, p)
	}
	if p.after != none {
		for _, t := range m.ready {
			if i := &m.insts[t.pc]; matches(i, p.after) {
				m.waiting = append(m.waiting, thread{i.Out, t.start})
			}
		}
	}
	return m.found
}

// follow takes a thread to all instructions that it comes to without reading.
func (m *machine) follow(t thread, p place) {
	if last := m.visited[t.pc]; last.round == m.round && (!m.every() || last.start == t.start) {
		return
	}
	m.visited[t.pc] = visit{m.round, t.start}
	switch i := &m.insts[t.pc]; i.Op {
	case syntax.InstAlt, syntax.InstAltMatch:
		m.follow(thread{i.Out, t.start}, p)
		m.follow(thread{i.Arg, t.start}, p)
	case syntax.InstNop:
		m.follow(thread{i.Out, t.start}, p)
	case syntax.InstCapture:
		if m.marked && i.Arg == 2 {
			t.start = p.at
		}
		m.follow(thread{i.Out, t.start}, p)
	case syntax.InstEmptyWidth:
		if syntax.EmptyOp(i.Arg)&^p.flags == 0 {
			m.follow(thread{i.Out, t.start}, p)
		}
	case syntax.InstMatch:
		if t.start != unmarked && (m.after == nil || !m.after(p.after)) {
			m.found = append(m.found, t.start)
		}
	case syntax.InstFail:
	default:
		if !m.every() || !slices.Contains(m.ready, t) { // other threads may have come between two visits of the same
			m.ready = append(m.ready, t)
		}
	}
}

// first is where the earliest match begins that may still be found.
func (m *machine) first() int {
	if !m.every() && len(m.waiting) > 0 {
		return m.waiting[0].start // they are in the order of their beginnings
	}
	first := math.MaxInt
	for _, t := range m.waiting {
		if t.start != unmarked {
			first = min(first, t.start)
		}
	}
	return first
}

// stop forgets what was read.
func (m *machine) stop() { m.waiting = m.waiting[:0] }
