package gateway

import (
	"fmt"

	"github.com/vektah/gqlparser/v2/ast"
)

// measure is how large a selection set is once its fragments are spread. A fragment is measured once, so a request cannot make the
// measuring itself expensive; counts saturate.
type measure struct {
	roots         int // fields at its own level
	fields        int // fields at all levels
	depth         int // levels of fields, introspection apart
	introspection int // levels of fields under __schema and __type
}

const saturated = 1 << 30

func (m *measure) add(o measure) {
	m.roots = min(m.roots+o.roots, saturated)
	m.fields = min(m.fields+o.fields, saturated)
	m.depth, m.introspection = max(m.depth, o.depth), max(m.introspection, o.introspection)
}

type measuring struct {
	fragments map[string]*ast.FragmentDefinition
	done      map[string]measure
	open      map[string]bool // being measured: meeting it again is a cycle
	cycle     *ast.FragmentSpread
}

// checkLimits measures the document's operations and refuses what is too large. It runs before validation, so that a large request
// costs no more than its parsing.
func (c *Config) checkLimits(doc *ast.QueryDocument) (message string, at *ast.Position) {
	m := measuring{fragments: map[string]*ast.FragmentDefinition{}, done: map[string]measure{}, open: map[string]bool{}}
	for _, f := range doc.Fragments {
		m.fragments[f.Name] = f
	}
	var whole measure
	for _, op := range doc.Operations {
		size := m.selections(op.SelectionSet)
		whole.add(size)
		switch {
		case m.cycle != nil:
			return fmt.Sprintf("Cannot spread fragment %q within itself.", short(m.cycle.Name)), m.cycle.Position
		case size.roots > c.MaxRootFields:
			return fmt.Sprintf("The operation has %d fields at its root; the limit is %d.", size.roots, c.MaxRootFields), op.Position
		case whole.fields > c.MaxFields:
			return fmt.Sprintf("The request has more fields than the limit of %d, fragments expanded.", c.MaxFields), op.Position
		case size.depth > c.MaxDepth:
			return fmt.Sprintf("The operation is %d levels deep; the limit is %d.", size.depth, c.MaxDepth), op.Position
		case size.introspection > c.MaxIntrospection:
			return fmt.Sprintf("The introspection is %d levels deep; the limit is %d.", size.introspection, c.MaxIntrospection), op.Position
		}
	}
	return "", nil
}

func (m *measuring) selections(set ast.SelectionSet) (size measure) {
	for _, selection := range set {
		switch s := selection.(type) {
		case *ast.Field:
			size.add(m.field(s))
		case *ast.InlineFragment:
			size.add(m.selections(s.SelectionSet))
		case *ast.FragmentSpread:
			size.add(m.spread(s))
		}
	}
	return size
}

func (m *measuring) field(f *ast.Field) measure {
	below := m.selections(f.SelectionSet)
	size := measure{roots: 1, fields: min(below.fields+1, saturated)}
	switch f.Name {
	case "__typename":
	case "__schema", "__type":
		size.introspection = 1 + max(below.depth, below.introspection)
	default:
		size.depth, size.introspection = below.depth+1, below.introspection
	}
	return size
}

func (m *measuring) spread(s *ast.FragmentSpread) measure {
	if size, ok := m.done[s.Name]; ok {
		return size
	}
	f := m.fragments[s.Name]
	if f == nil {
		return measure{} // validation names it
	}
	if m.open[s.Name] {
		m.cycle = s
		return measure{}
	}
	m.open[s.Name] = true
	size := m.selections(f.SelectionSet)
	delete(m.open, s.Name)
	m.done[s.Name] = size
	return size
}
