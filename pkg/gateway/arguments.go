package gateway

import (
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/agentplatform/agentplatform/pkg/fault"
)

// problem is an error of a field before it has its path. at is nil for an error of the field as a whole.
type problem struct {
	typ     fault.Type
	message string
	at      *ast.Position
}

func invalidArgument(message string, at *ast.Position) *problem {
	return &problem{fault.ValidationError, message, at}
}

// arguments appends the field's arguments as a JSON object in the order of their definition, variables and defaults applied.
func (s *schema) arguments(dst []byte, f *field, vars variables) ([]byte, *problem) {
	node := f.nodes[0]
	object := newMembers(dst)
	for _, def := range f.def.Arguments {
		arg := node.Arguments.ForName(def.Name)
		if arg == nil || vars.missing(arg.Value) {
			switch {
			case def.DefaultValue != nil:
				object.dst, _ = s.literal(object.name(def.Name), def.DefaultValue, def.Type, nil)
			case def.Type.NonNull && arg == nil:
				return dst, invalidArgument(`Argument "`+def.Name+`" of required type "`+def.Type.String()+`" was not provided.`, node.Position)
			case def.Type.NonNull:
				return dst, invalidArgument(`Argument "`+def.Name+`" of required type "`+def.Type.String()+`" was provided the variable "$`+
					arg.Value.Raw+`" which was not provided a runtime value.`, arg.Value.Position)
			}
			continue
		}
		isNull := arg.Value.Kind == ast.NullValue || arg.Value.Kind == ast.Variable && string(vars[arg.Value.Raw]) == "null"
		if isNull && def.Type.NonNull {
			return dst, invalidArgument(`Argument "`+def.Name+`" of non-null type "`+def.Type.String()+`" must not be null.`, arg.Value.Position)
		}
		var ok bool
		if object.dst, ok = s.literal(object.name(def.Name), arg.Value, def.Type, vars); !ok {
			return dst, invalidArgument(`Argument "`+def.Name+`" has invalid value `+short(source(arg.Value))+`.`, arg.Value.Position)
		}
	}
	return object.end(), nil
}
