package gateway

import (
	"strconv"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/agentplatform/agentplatform/pkg/gateway/internal/tape"
)

// variables are the coerced variables of a request as JSON; one that is neither given nor has a default is absent.
type variables map[string][]byte

func (v variables) missing(value *ast.Value) bool {
	if value.Kind != ast.Variable {
		return false
	}
	_, ok := v[value.Raw]
	return !ok
}

// literal appends a literal of a request or of the schema, coerced to typ, as JSON. ok is false when it cannot be: validation has
// found that before, except for what depends on a variable's value.
func (s *schema) literal(dst []byte, value *ast.Value, typ *ast.Type, vars variables) (out []byte, ok bool) {
	if value.Kind == ast.Variable {
		raw, given := vars[value.Raw]
		if !given || (typ.NonNull && string(raw) == "null") {
			return dst, false
		}
		return append(dst, raw...), true
	}
	if value.Kind == ast.NullValue {
		return append(dst, "null"...), !typ.NonNull
	}
	if typ.Elem != nil {
		return s.literalList(dst, value, typ.Elem, vars)
	}
	def := s.Types[typ.NamedType]
	switch {
	case def == nil:
		return dst, false
	case def.Kind == ast.InputObject:
		return s.literalObject(dst, value, def, vars)
	case def.Kind == ast.Enum:
		if value.Kind != ast.EnumValue || !s.enums[def.Name][value.Raw] {
			return dst, false
		}
		return tape.AppendText(dst, value.Raw), true
	default:
		return s.literalScalar(dst, value, def.Name, vars)
	}
}

func (s *schema) literalList(dst []byte, value *ast.Value, item *ast.Type, vars variables) ([]byte, bool) {
	dst = append(dst, '[')
	if value.Kind != ast.ListValue { // a list of one
		dst, ok := s.literal(dst, value, item, vars)
		return append(dst, ']'), ok
	}
	for i, child := range value.Children {
		if i > 0 {
			dst = append(dst, ',')
		}
		if vars.missing(child.Value) {
			if item.NonNull {
				return dst, false
			}
			dst = append(dst, "null"...)
			continue
		}
		var ok bool
		if dst, ok = s.literal(dst, child.Value, item, vars); !ok {
			return dst, false
		}
	}
	return append(dst, ']'), true
}

func (s *schema) literalObject(dst []byte, value *ast.Value, def *ast.Definition, vars variables) ([]byte, bool) {
	if value.Kind != ast.ObjectValue {
		return dst, false
	}
	object := newMembers(dst)
	for _, field := range def.Fields {
		given := value.Children.ForName(field.Name)
		if given == nil || vars.missing(given) {
			if field.DefaultValue != nil {
				object.dst, _ = s.literal(object.name(field.Name), field.DefaultValue, field.Type, nil)
			} else if field.Type.NonNull {
				return dst, false
			}
			continue
		}
		var ok bool
		if object.dst, ok = s.literal(object.name(field.Name), given, field.Type, vars); !ok {
			return object.dst, false
		}
		object.null = object.null || string(object.dst[len(object.dst)-4:]) == "null"
	}
	if def.Directives.ForName("oneOf") != nil && (object.count != 1 || object.null) {
		return dst, false
	}
	return object.end(), true
}

func (s *schema) literalScalar(dst []byte, value *ast.Value, scalar string, vars variables) ([]byte, bool) {
	isText := value.Kind == ast.StringValue || value.Kind == ast.BlockValue
	switch scalar {
	case "String":
		return tape.AppendText(dst, value.Raw), isText
	case "ID":
		return tape.AppendText(dst, value.Raw), isText || value.Kind == ast.IntValue
	case "Boolean":
		return append(dst, value.Raw...), value.Kind == ast.BooleanValue
	case "Int":
		n, err := strconv.ParseInt(value.Raw, 10, 32)
		return strconv.AppendInt(dst, n, 10), err == nil && value.Kind == ast.IntValue
	case "Float":
		f, err := strconv.ParseFloat(value.Raw, 64)
		return tape.AppendFloat(dst, f), err == nil && (value.Kind == ast.IntValue || value.Kind == ast.FloatValue)
	}
	start := len(dst)
	dst, ok := s.untyped(dst, value, vars)
	if !ok || checkScalar(scalar, dst[start:]) != "" {
		return dst, false
	}
	return dst, true
}

// untyped is a literal of a scalar that the schema declares: any JSON value.
func (s *schema) untyped(dst []byte, value *ast.Value, vars variables) ([]byte, bool) {
	switch value.Kind {
	case ast.Variable:
		raw, ok := vars[value.Raw]
		return append(dst, raw...), ok
	case ast.StringValue, ast.BlockValue, ast.EnumValue:
		return tape.AppendText(dst, value.Raw), true
	case ast.IntValue, ast.FloatValue:
		f, err := strconv.ParseFloat(value.Raw, 64)
		return tape.AppendFloat(dst, f), err == nil
	case ast.ListValue:
		dst = append(dst, '[')
		for i, child := range value.Children {
			if i > 0 {
				dst = append(dst, ',')
			}
			var ok bool
			if dst, ok = s.untyped(dst, child.Value, vars); !ok {
				return dst, false
			}
		}
		return append(dst, ']'), true
	case ast.ObjectValue:
		object := newMembers(dst)
		for _, child := range value.Children {
			var ok bool
			if object.dst, ok = s.untyped(object.name(child.Name), child.Value, vars); !ok {
				return object.dst, false
			}
		}
		return object.end(), true
	default: // true, false, null
		return append(dst, value.Raw...), true
	}
}

// members writes the members of a JSON object.
type members struct {
	dst   []byte
	count int
	null  bool // one of them is null
}

func newMembers(dst []byte) members { return members{dst: append(dst, '{')} }

// name starts a member and returns the buffer for its value.
func (m *members) name(name string) []byte {
	if m.count++; m.count > 1 {
		m.dst = append(m.dst, ',')
	}
	return append(tape.AppendText(m.dst, name), ':')
}

func (m *members) end() []byte { return append(m.dst, '}') }
