package jsonschema

import (
	"errors"
	"math/big"
	"regexp"
)

// node is a compiled schema: what it asks for by itself, and the schemas below it.
type node struct {
	never    bool // the schema false
	types    []string
	bounds   []bound
	pattern  *pattern
	unique   bool
	required []string
	needs    []need // dependentRequired
	values   []values

	// Evaluated on the same value.
	not, when, then, otherwise *node
	all, any, one              []*node // all: $ref and allOf
	dependents                 []named

	// Evaluated on items, or on some.
	prefix                        []*node
	items, contains, restOfItems  *node
	leastContained, mostContained *big.Rat
	containedCount                bool // what contains matches counts as evaluated: since 2020-12
	// Evaluated on members, or on some.
	properties                           map[string]*node
	patterns                             []patterned
	additional, restOfMembers, nameOfAny *node
}

// bound is a limit of a number, or of how long something is.
type bound struct {
	*measure
	limit *big.Rat
	text  string // of the limit
}

// values are those that enum or const allow, and what is wrong with others.
type values struct {
	allowed map[string]bool // as canonical writes them
	text    string
}

type need struct {
	name  string
	names []string
}

type named struct {
	name string
	node *node
}

type patterned struct {
	*pattern
	node *node
}

type pattern struct {
	*regexp.Regexp
	states int
}

// inPlace are the schemas that n has evaluated on the same value.
func (n *node) inPlace() []*node {
	all := []*node{n.not, n.when, n.then, n.otherwise}
	all = append(append(append(all, n.all...), n.any...), n.one...)
	for _, d := range n.dependents {
		all = append(all, d.node)
	}
	return all
}

// endless reports a reference that leads back to where it is without going into the value: its evaluation has no end.
func endless(nodes []*node) error {
	const following, followed = 1, 2
	marks := map[*node]int{}
	var follow func(n *node) error
	follow = func(n *node) error {
		if n == nil || marks[n] == followed {
			return nil
		}
		if marks[n] == following {
			return errors.New("a reference leads back to itself")
		}
		marks[n] = following
		for _, sub := range n.inPlace() {
			if err := follow(sub); err != nil {
				return err
			}
		}
		marks[n] = followed
		return nil
	}
	for _, n := range nodes {
		if err := follow(n); err != nil {
			return err
		}
	}
	return nil
}
