package jsonschema

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// evaluation is one of a schema on a value. When left is negative it has given up, and what it says means nothing.
type evaluation struct {
	left   int // steps
	tracks bool
}

// place is one in the value: a member's name or an item's index, below another one. nil is the value itself.
type place struct {
	above *place
	token any
}

// seen are the names or indexes that were evaluated; nil when nobody asks.
type seen map[any]bool

// problem is why a value is not what a schema asks for. It is put into words at the end only: most are of branches that are not taken.
type problem struct {
	at   *place
	says func() string
}

func (p *problem) error() error {
	var tokens []string
	for at := p.at; at != nil; at = at.above {
		tokens = append(tokens, fmt.Sprint(at.token))
	}
	slices.Reverse(tokens)
	return errors.New("at '" + below("", tokens...) + "': " + p.says())
}

func plain(at *place, text string) *problem {
	return &problem{at, func() string { return text }}
}

// check evaluates n on v, and adds to outer what of v was evaluated, when it succeeds.
func (e *evaluation) check(n *node, v any, at *place, outer seen) *problem {
	if e.left -= cost(n, v); e.left < 0 {
		return nil
	}
	var marks seen
	if e.tracks {
		marks = seen{}
	}
	for _, step := range []func(*node, any, *place, seen) *problem{e.itself, e.inPlace, e.items, e.members} {
		if p := step(n, v, at, marks); p != nil || e.left < 0 {
			return p
		}
	}
	if outer != nil {
		e.left -= len(marks)
		maps.Copy(outer, marks)
	}
	return nil
}

// cost is about what n itself does with v, in steps.
func cost(n *node, v any) int {
	c := 1 + len(n.required) + len(n.needs) + len(n.bounds)
	if n.values != nil || n.unique {
		c += 2 * size(v)
	}
	switch v := v.(type) {
	case string:
		c += len(v) / 1024
		if n.pattern != nil {
			c += n.pattern.cost(v)
		}
	case []any:
		c += len(v)
	case map[string]any:
		c += len(v)
		for _, p := range n.patterns {
			for name := range v {
				c += 1 + p.cost(name)
			}
		}
	}
	return c
}

// cost is of matching s: RE2 may be in all states at each character.
func (p *pattern) cost(s string) int { return len(s) * p.states / 512 }

// inPlace evaluates schemas on the same value.
func (e *evaluation) inPlace(n *node, v any, at *place, marks seen) *problem {
	for _, sub := range n.all {
		if p := e.check(sub, v, at, marks); p != nil {
			return p
		}
	}
	m, _ := v.(map[string]any)
	for _, d := range n.dependents {
		if _, ok := m[d.name]; ok {
			if p := e.check(d.node, v, at, marks); p != nil {
				return p
			}
		}
	}
	if n.when != nil {
		next := n.then
		if e.check(n.when, v, at, marks) != nil {
			next = n.otherwise
		}
		if next != nil {
			if p := e.check(next, v, at, marks); p != nil {
				return p
			}
		}
	}
	if n.not != nil && e.check(n.not, v, at, nil) == nil {
		return plain(at, "'not' failed")
	}
	if matched, p := e.branches(n.any, v, at, marks); len(n.any) > 0 && len(matched) == 0 {
		return p
	}
	matched, p := e.branches(n.one, v, at, marks)
	if len(matched) > 1 {
		return plain(at, fmt.Sprintf("'oneOf' failed, subschemas %d, %d matched", matched[0], matched[1]))
	}
	if len(n.one) > 0 && len(matched) == 0 {
		return p
	}
	return nil
}

// branches are those that v matches, and why it does not match the first that it does not. All are evaluated, for what they mark.
func (e *evaluation) branches(branches []*node, v any, at *place, marks seen) (matched []int, first *problem) {
	for i, sub := range branches {
		if p := e.check(sub, v, at, marks); p == nil {
			matched = append(matched, i)
		} else if first == nil {
			first = p
		}
	}
	return matched, first
}

func (s seen) add(token any) {
	if s != nil {
		s[token] = true
	}
}
