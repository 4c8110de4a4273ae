package gateway

import (
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/agentplatform/agentplatform/pkg/gateway/internal/tape"
)

// maxVariableErrors is how many errors of variables one answer lists.
const maxVariableErrors = 50

// coerceVariables reads the variables that the operation declares from the object at node at (doc nil: none were sent).
func (s *schema) coerceVariables(d *document, op *ast.OperationDefinition, doc *tape.Doc, at uint32) (variables, []Error) {
	if len(op.VariableDefinitions) == 0 {
		return nil, nil
	}
	out := make(variables, len(op.VariableDefinitions))
	c := coercion{schema: s}
	for _, v := range op.VariableDefinitions {
		given, found := uint32(0), false
		if doc != nil {
			given, found = doc.Get(at, v.Variable)
		}
		c.begin(v.Variable, func(message string) Error { return d.invalid(message, v.Position) })
		switch {
		case !found && v.DefaultValue != nil:
			if raw, ok := s.literal(nil, v.DefaultValue, v.Type, nil); ok {
				out[v.Variable] = raw
			}
		case !found:
			if v.Type.NonNull {
				c.report(`Variable "$` + v.Variable + `" of required type "` + v.Type.String() + `" was not provided.`)
			}
		case doc.Kind(given) == tape.Null && v.Type.NonNull:
			c.report(`Variable "$` + v.Variable + `" of non-null type "` + v.Type.String() + `" must not be null.`)
		default:
			out[v.Variable] = c.value(nil, doc, given, v.Type)
		}
	}
	return out, c.errors
}

// short cuts what an error message repeats of a request.
func short(s string) string {
	const most = 200
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
