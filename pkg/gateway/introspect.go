package gateway

import (
	"encoding/json"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/agentplatform/agentplatform/pkg/gateway/internal/tape"
)

// Introspection is executed like any other selection, over one JSON document made at start: the object of __schema. A reference to
// a named type is that type's name as a string there; complete.go follows it to the type's node, so the cycles of the type graph
// need no copies. Orders are those of graphql-js, so that the standard introspection query gives the same bytes.

type metaType struct {
	Kind           ast.DefinitionKind `json:"kind"`
	Name           string             `json:"name"`
	Description    *string            `json:"description"`
	SpecifiedByURL *string            `json:"specifiedByURL"`
	Fields         []metaField        `json:"fields"`
	Interfaces     []string           `json:"interfaces"`
	PossibleTypes  []string           `json:"possibleTypes"`
	EnumValues     []metaField        `json:"enumValues"`
	InputFields    []metaField        `json:"inputFields"`
	IsOneOf        *bool              `json:"isOneOf"`
}

// metaField is a field, an argument, an input field or an enum value.
type metaField struct {
	Name              string      `json:"name"`
	Description       *string     `json:"description"`
	Args              []metaField `json:"args"`
	Type              any         `json:"type,omitempty"`
	DefaultValue      *string     `json:"defaultValue,omitempty"`
	IsDeprecated      bool        `json:"isDeprecated"`
	DeprecationReason *string     `json:"deprecationReason"`
}

type metaDirective struct {
	metaField
	IsRepeatable bool                    `json:"isRepeatable"`
	Locations    []ast.DirectiveLocation `json:"locations"`
}

type metaSchema struct {
	Description      *string         `json:"description"`
	Types            []metaType      `json:"types"`
	QueryType        *string         `json:"queryType"`
	MutationType     *string         `json:"mutationType"`
	SubscriptionType *string         `json:"subscriptionType"`
	Directives       []metaDirective `json:"directives"`
}

func (s *schema) introspect(declared *ast.SchemaDocument) error {
	meta := metaSchema{Description: text(s.Description)}
	for _, own := range []bool{true, false} { // the schema's directives come before the standard ones
		for _, d := range declared.Directives {
			if d.Position.Src.BuiltIn != own {
				meta.Directives = append(meta.Directives, s.metaDirective(d))
			}
		}
	}
	types := s.ordered(declared)
	for _, def := range types {
		meta.Types = append(meta.Types, s.metaType(def, types))
	}
	for def, at := range map[*ast.Definition]**string{s.Query: &meta.QueryType, s.Mutation: &meta.MutationType, s.Subscription: &meta.SubscriptionType} {
		if def != nil {
			*at = &def.Name
		}
	}
	raw, err := json.Marshal(meta)
	if err != nil {
		return err
	}
	s.introspection, s.typeAt = &tape.Doc{}, map[string]uint32{}
	if err := s.introspection.Parse(raw); err != nil {
		return err
	}
	list, _ := s.introspection.Get(0, "types")
	at := list + 1
	for _, def := range types {
		s.typeAt[def.Name] = at
		at = s.introspection.End(at)
	}
	return nil
}

// ordered lists the declared types, each followed by the standard types to which it is the first to refer, then those that only
// directives and introspection refer to.
func (s *schema) ordered(declared *ast.SchemaDocument) (out []*ast.Definition) {
	seen := map[string]bool{}
	var collect func(name string)
	arguments := func(args ast.ArgumentDefinitionList) {
		for _, a := range args {
			collect(a.Type.Name())
		}
	}
	references := func(def *ast.Definition) {
		out = append(out, def)
		for _, t := range def.Types {
			collect(t)
		}
		for _, t := range def.Interfaces {
			collect(t)
		}
		for _, f := range visible(def.Fields) {
			collect(f.Type.Name())
			arguments(f.Arguments)
		}
	}
	collect = func(name string) {
		if def := s.Types[name]; def != nil && !seen[name] {
			seen[name] = true
			references(def)
		}
	}
	for _, def := range declared.Definitions {
		seen[def.Name] = !def.Position.Src.BuiltIn
	}
	for _, def := range declared.Definitions {
		if !def.Position.Src.BuiltIn {
			references(s.Types[def.Name])
		}
	}
	for _, own := range []bool{true, false} {
		for _, d := range declared.Directives {
			if d.Position.Src.BuiltIn != own {
				arguments(d.Arguments)
			}
		}
	}
	collect("__Schema")
	return out
}

// visible leaves out __schema and __type, which loading adds to the query type.
func visible(fields ast.FieldList) (out ast.FieldList) {
	for _, f := range fields {
		if !strings.HasPrefix(f.Name, "__") {
			out = append(out, f)
		}
	}
	return out
}

func (s *schema) metaType(def *ast.Definition, all []*ast.Definition) metaType {
	t := metaType{Kind: def.Kind, Name: def.Name, Description: text(def.Description)}
	switch def.Kind {
	case ast.Scalar:
		if d := def.Directives.ForName("specifiedBy"); d != nil {
			t.SpecifiedByURL = &d.Arguments.ForName("url").Value.Raw
		}
	case ast.Object, ast.Interface:
		t.Fields, t.Interfaces = []metaField{}, append([]string{}, def.Interfaces...)
		for _, f := range visible(def.Fields) {
			m := metaField{Name: f.Name, Description: text(f.Description), Args: s.metaArguments(f.Arguments), Type: metaRef(f.Type)}
			t.Fields = append(t.Fields, m.deprecated(f.Directives))
		}
	case ast.Enum:
		t.EnumValues = []metaField{}
		for _, v := range def.EnumValues {
			t.EnumValues = append(t.EnumValues, metaField{Name: v.Name, Description: text(v.Description)}.deprecated(v.Directives))
		}
	case ast.InputObject:
		oneOf := def.Directives.ForName("oneOf") != nil
		t.InputFields, t.IsOneOf = []metaField{}, &oneOf
		for _, f := range def.Fields {
			m := metaField{Name: f.Name, Description: text(f.Description), Type: metaRef(f.Type), DefaultValue: s.printed(f.DefaultValue, f.Type)}
			t.InputFields = append(t.InputFields, m.deprecated(f.Directives))
		}
	}
	switch def.Kind {
	case ast.Union:
		t.PossibleTypes = def.Types
	case ast.Interface:
		t.PossibleTypes = []string{}
		for _, other := range all {
			if other.Kind == ast.Object && s.isA(def, other) {
				t.PossibleTypes = append(t.PossibleTypes, other.Name)
			}
		}
	}
	return t
}

func (s *schema) metaDirective(d *ast.DirectiveDefinition) metaDirective {
	m := metaField{Name: d.Name, Description: text(d.Description), Args: s.metaArguments(d.Arguments)}
	return metaDirective{metaField: m.deprecated(d.Directives), IsRepeatable: d.IsRepeatable, Locations: d.Locations}
}

func (s *schema) metaArguments(args ast.ArgumentDefinitionList) []metaField {
	out := []metaField{}
	for _, a := range args {
		m := metaField{Name: a.Name, Description: text(a.Description), Type: metaRef(a.Type), DefaultValue: s.printed(a.DefaultValue, a.Type)}
		out = append(out, m.deprecated(a.Directives))
	}
	return out
}

func (m metaField) deprecated(directives ast.DirectiveList) metaField {
	if d := directives.ForName("deprecated"); d != nil {
		reason := "No longer supported"
		if arg := d.Arguments.ForName("reason"); arg != nil {
			reason = arg.Value.Raw
		}
		m.IsDeprecated, m.DeprecationReason = true, &reason
	}
	return m
}

// metaRef is a reference to a type: its name, or an object for each wrapper around it.
func metaRef(t *ast.Type) any {
	switch {
	case t.NonNull:
		return map[string]any{"kind": "NON_NULL", "ofType": metaRef(&ast.Type{NamedType: t.NamedType, Elem: t.Elem})}
	case t.Elem != nil:
		return map[string]any{"kind": "LIST", "ofType": metaRef(t.Elem)}
	default:
		return t.NamedType
	}
}

// isA reports whether def is a possible type of the abstract type.
func (s *schema) isA(abstract, def *ast.Definition) bool {
	for _, p := range s.PossibleTypes[abstract.Name] {
		if p == def {
			return true
		}
	}
	return false
}

func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
