package guardrail

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"unicode"
	"unicode/utf8"
)

// program is a regular expression that a machine can run, and what it asks beyond that.
type program struct {
	insts []syntax.Inst
	start uint32
	ascii [utf8.RuneSelf]bool // what a match can begin with
	other bool                // and whether it can with any other character

	marked bool                // what the expression's first group begins with is where the match begins; what is before is only its surroundings
	before func(r rune) bool   // what cannot stand before the expression; nil: nothing
	after  func(r rune) bool   // what cannot stand behind it; nil: nothing
	check  func(s string) bool // what a match must stand up to; nil: nothing
	tail   func(r rune) bool   // what belongs to a match if it follows; nil: nothing
}

// every reports whether all matches must be looked at, and not the longest ones only.
func (p *program) every() bool { return p.check != nil || p.marked }

// translate makes a program of an expression.
func translate(expression string, limits bool) (*program, error) {
	re, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return nil, err
	}
	if limits {
		if shortest(re) == 0 {
			return nil, errors.New("it matches where there is nothing")
		}
		switch n := longest(re); {
		case n >= endless:
			return nil, errors.New("a part of it may repeat without end: say {0,50} instead of *, and {1,50} instead of +")
		case n > maxMatch:
			return nil, fmt.Errorf("it may match %d characters; at most %d", n, maxMatch)
		}
	}
	prog, err := syntax.Compile(re.Simplify())
	if err != nil {
		return nil, err
	}
	p := &program{insts: prog.Inst, start: uint32(prog.Start)}
	p.beginnings(p.start, make([]bool, len(p.insts)))
	return p, nil
}

// builtin is translate for the platform's own expressions.
func builtin(expression string) *program {
	p, err := translate(expression, false)
	if err != nil {
		panic(err) // a test would have seen it
	}
	return p
}

// beginnings collects what can be read first from pc on.
func (p *program) beginnings(pc uint32, seen []bool) {
	if seen[pc] {
		return
	}
	seen[pc] = true
	switch i := &p.insts[pc]; i.Op {
	case syntax.InstAlt, syntax.InstAltMatch:
		p.beginnings(i.Out, seen)
		p.beginnings(i.Arg, seen)
	case syntax.InstCapture, syntax.InstNop, syntax.InstEmptyWidth:
		p.beginnings(i.Out, seen)
	case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
		for r := range p.ascii {
			p.ascii[r] = p.ascii[r] || matches(i, rune(r))
		}
		folds := syntax.Flags(i.Arg)&syntax.FoldCase != 0
		p.other = p.other || folds || len(i.Rune) == 0 || i.Rune[len(i.Rune)-1] >= utf8.RuneSelf
	}
}

// begins reports whether a match can begin with r.
func (p *program) begins(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= 0 && p.ascii[r]
	}
	return p.other
}

func matches(i *syntax.Inst, r rune) bool {
	switch i.Op {
	case syntax.InstRune1:
		return i.Rune[0] == r
	case syntax.InstRuneAny:
		return true
	case syntax.InstRuneAnyNotNL:
		return r != '\n'
	default:
		return i.MatchRune(r)
	}
}

// endless is the length of what has no longest match.
const endless = 1 << 30

// longest is how many characters an expression matches at the most.
func longest(re *syntax.Regexp) int {
	switch re.Op {
	case syntax.OpLiteral:
		return len(re.Rune)
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return 1
	case syntax.OpStar, syntax.OpPlus:
		return times(longest(re.Sub[0]), endless)
	case syntax.OpRepeat:
		if re.Max < 0 {
			return times(longest(re.Sub[0]), endless)
		}
		return times(longest(re.Sub[0]), re.Max)
	case syntax.OpAlternate:
		n := 0
		for _, sub := range re.Sub {
			n = max(n, longest(sub))
		}
		return n
	default: // a group, a sequence, an optional part, or what has no length
		n := 0
		for _, sub := range re.Sub {
			n = min(n+longest(sub), endless)
		}
		return n
	}
}

// shortest is how many characters an expression matches at the least.
func shortest(re *syntax.Regexp) int {
	switch re.Op {
	case syntax.OpLiteral:
		return len(re.Rune)
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return 1
	case syntax.OpNoMatch:
		return endless
	case syntax.OpStar, syntax.OpQuest:
		return 0
	case syntax.OpRepeat:
		return times(shortest(re.Sub[0]), re.Min)
	case syntax.OpAlternate:
		n := endless
		for _, sub := range re.Sub {
			n = min(n, shortest(sub))
		}
		return n
	default:
		n := 0
		for _, sub := range re.Sub {
			n = min(n+shortest(sub), endless)
		}
		return n
	}
}

func times(n, m int) int {
	if n == 0 || m == 0 {
		return 0
	}
	if n >= endless/m {
		return endless
	}
	return n * m
}

// none stands for a character where a text begins or ends.
const none rune = -1

// between says what holds between two characters.
func between(before, after rune) (flags syntax.EmptyOp) {
	if before == none {
		flags |= syntax.EmptyBeginText | syntax.EmptyBeginLine
	}
	if before == '\n' {
		flags |= syntax.EmptyBeginLine
	}
	if after == none {
		flags |= syntax.EmptyEndText | syntax.EmptyEndLine
	}
	if after == '\n' {
		flags |= syntax.EmptyEndLine
	}
	if isWord(before) != isWord(after) {
		return flags | syntax.EmptyWordBoundary
	}
	return flags | syntax.EmptyNoWordBoundary
}

// isWord reports whether r is part of a word. Unlike RE2's own, it knows all letters.
func isWord(r rune) bool {
	if r < utf8.RuneSelf {
		return r == '_' || '0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z'
	}
	return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.Is(unicode.Mn, r)
}
