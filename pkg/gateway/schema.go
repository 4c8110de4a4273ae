package gateway

import (
	_ "embed"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"

	"github.com/agentplatform/agentplatform/pkg/gateway/internal/tape"
)

// builtin declares what every GraphQL schema has, with the descriptions of graphql-js 16.15.0 (which prints this file). gqlparser's
// own prelude is not used: it has @defer, which this gateway does not execute.
//
//go:embed builtin.graphql
var builtin string

// schema is a loaded SDL and what is derived from it once.
type schema struct {
	*ast.Schema
	enums         map[string]map[string]bool // names of each enum's values
	feeds         map[string][]string        // publish mutation → subscription fields
	introspection *tape.Doc                  // the object of __schema
	typeAt        map[string]uint32          // each type's node in it
}

func newSchema(prelude, sdl string) (*schema, error) {
	sources := []*ast.Source{
		{Name: "builtin.graphql", Input: builtin, BuiltIn: true},
		{Name: "prelude.graphql", Input: prelude},
		{Name: "schema.graphql", Input: sdl},
	}
	loaded, err := validator.LoadSchema(sources...)
	if err != nil {
		return nil, err
	}
	declared, err := parser.ParseSchemas(sources...) // for the order of declaration, which the loaded schema forgets
	if err != nil {
		return nil, err
	}
	s := &schema{Schema: loaded, enums: map[string]map[string]bool{}, feeds: map[string][]string{}}
	for name, def := range loaded.Types {
		if def.Kind == ast.Enum {
			s.enums[name] = map[string]bool{}
			for _, v := range def.EnumValues {
				s.enums[name][v.Name] = true
			}
		}
	}
	if loaded.Subscription != nil {
		for _, field := range loaded.Subscription.Fields {
			for _, mutation := range directiveList(field.Directives, "aws_subscribe", "mutations") {
				s.feeds[mutation] = append(s.feeds[mutation], field.Name)
			}
		}
	}
	return s, s.introspect(declared)
}

// root is the type of an operation's root fields; nil when the schema has no such operation.
func (s *schema) root(op ast.Operation) *ast.Definition {
	switch op {
	case ast.Mutation:
		return s.Mutation
	case ast.Subscription:
		return s.Subscription
	default:
		return s.Query
	}
}

// directiveList is the value of a directive's argument that is a list of strings.
func directiveList(directives ast.DirectiveList, name, argument string) (out []string) {
	d := directives.ForName(name)
	if d == nil {
		return nil
	}
	if arg := d.Arguments.ForName(argument); arg != nil {
		for _, child := range arg.Value.Children {
			out = append(out, child.Value.Raw)
		}
		if arg.Value.Kind == ast.StringValue {
			out = []string{arg.Value.Raw}
		}
	}
	return out
}

// access says which users may ask for a field, by AppSync's directives.
type access struct {
	platform bool     // @aws_iam without @aws_cognito_user_pools: no user at all
	groups   []string // @aws_cognito_user_pools(cognito_groups: …): members of one of them
}

// access of a field is its own directives, else those of its type.
func (s *schema) access(parent *ast.Definition, field *ast.FieldDefinition) access {
	for _, list := range []ast.DirectiveList{field.Directives, parent.Directives} {
		iam, users := list.ForName("aws_iam") != nil, list.ForName("aws_cognito_user_pools") != nil
		if iam || users {
			return access{platform: !users, groups: directiveList(list, "aws_cognito_user_pools", "cognito_groups")}
		}
	}
	return access{}
}
