package gateway

import (
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
)

// collector gathers the fields that apply to an object type, by response name in order of first appearance.
type collector struct {
	*builder
	def    *ast.Definition
	groups [][]*ast.Field
	at     map[string]int
	spread map[string]bool
}

func (c *collector) collect(set ast.SelectionSet) {
	for _, selection := range set {
		switch s := selection.(type) {
		case *ast.Field:
			if !c.included(s.Directives) {
				continue
			}
			i, ok := c.at[s.Alias]
			if !ok {
				i = len(c.groups)
				c.at[s.Alias] = i
				c.groups = append(c.groups, nil)
			}
			c.groups[i] = append(c.groups[i], s)
		case *ast.InlineFragment:
			if c.included(s.Directives) && c.applies(s.TypeCondition) {
				c.collect(s.SelectionSet)
			}
		case *ast.FragmentSpread:
			if !c.included(s.Directives) || c.spread[s.Name] {
				continue
			}
			c.spread[s.Name] = true
			if c.applies(s.Definition.TypeCondition) {
				c.collect(s.Definition.SelectionSet)
			}
		}
	}
}

func (c *collector) applies(condition string) bool {
	if condition == "" || condition == c.def.Name {
		return true
	}
	typ := c.schema.Types[condition]
	return typ.IsAbstractType() && c.schema.isA(typ, c.def)
}

func (c *collector) included(directives ast.DirectiveList) bool {
	return !c.is(directives.ForName("skip"), "true") && !c.is(directives.ForName("include"), "false")
}

// is reports whether the directive is there and its condition has the value.
func (c *collector) is(d *ast.Directive, value string) bool {
	if d == nil {
		return false
	}
	condition := d.Arguments.ForName("if").Value
	if condition.Kind == ast.Variable {
		return string(c.vars[condition.Raw]) == value
	}
	return condition.Raw == value
}

// switches lists the variables that @skip and @include use anywhere in the document.
func switches(doc *ast.QueryDocument) (names []string) {
	var visit func(set ast.SelectionSet)
	note := func(directives ast.DirectiveList) {
		for _, d := range directives {
			arg := d.Arguments.ForName("if")
			if arg != nil && arg.Value.Kind == ast.Variable && !slices.Contains(names, arg.Value.Raw) {
				names = append(names, arg.Value.Raw)
			}
		}
	}
	visit = func(set ast.SelectionSet) {
		for _, selection := range set {
			switch s := selection.(type) {
			case *ast.Field:
				note(s.Directives)
				visit(s.SelectionSet)
			case *ast.InlineFragment:
				note(s.Directives)
				visit(s.SelectionSet)
			case *ast.FragmentSpread:
				note(s.Directives)
			}
		}
	}
	for _, op := range doc.Operations {
		visit(op.SelectionSet)
	}
	for _, f := range doc.Fragments {
		visit(f.SelectionSet)
	}
	return names
}

func usesVariable(v *ast.Value) bool {
	return v.Kind == ast.Variable || slices.ContainsFunc(v.Children, func(c *ast.ChildValue) bool { return usesVariable(c.Value) })
}
