package gateway

import (
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/agentplatform/agentplatform/pkg/gateway/internal/tape"
)

// printed is a default value as introspection shows it: coerced to its type, in GraphQL's notation. Nil when there is none.
func (s *schema) printed(value *ast.Value, typ *ast.Type) *string {
	if value == nil {
		return nil
	}
	raw, ok := s.literal(nil, value, typ, nil)
	var doc tape.Doc
	if !ok || doc.Parse(raw) != nil {
		return nil
	}
	out := string(s.print(nil, &doc, 0, typ))
	return &out
}

func (s *schema) print(dst []byte, doc *tape.Doc, at uint32, typ *ast.Type) []byte {
	switch kind := doc.Kind(at); {
	case kind == tape.Array && typ.Elem != nil:
		dst = append(dst, '[')
		for i := at + 1; i < doc.End(at); i = doc.End(i) {
			if i > at+1 {
				dst = append(dst, ", "...)
			}
			dst = s.print(dst, doc, i, typ.Elem)
		}
		return append(dst, ']')
	case typ.Elem != nil && kind != tape.Null:
		return s.print(dst, doc, at, typ.Elem)
	case kind == tape.Object && s.Types[typ.Name()].Kind == ast.InputObject:
		dst = append(dst, '{')
		for i := at + 1; i < doc.End(at); i = doc.End(i + 1) {
			if i > at+1 {
				dst = append(dst, ", "...)
			}
			name := doc.Text(i)
			dst = append(append(dst, name...), ": "...)
			dst = s.print(dst, doc, i+1, s.Types[typ.Name()].Fields.ForName(name).Type)
		}
		return append(dst, '}')
	case kind == tape.String:
		text := doc.Text(at)
		_, err := strconv.ParseInt(text, 10, 64)
		if s.enums[typ.Name()] != nil || (typ.Name() == "ID" && err == nil && text[0] != '+') {
			return append(dst, text...)
		}
	}
	return doc.Append(dst, at)
}

// source is a literal as graphql-js prints it in a message.
func source(v *ast.Value) string {
	var parts []string
	for _, c := range v.Children {
		if part := source(c.Value); v.Kind == ast.ObjectValue {
			parts = append(parts, c.Name+": "+part)
		} else {
			parts = append(parts, part)
		}
	}
	switch v.Kind {
	case ast.ListValue:
		return "[" + strings.Join(parts, ", ") + "]"
	case ast.ObjectValue:
		return "{" + strings.Join(parts, ", ") + "}"
	default:
		return v.String()
	}
}
