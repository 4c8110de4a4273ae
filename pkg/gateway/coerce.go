package gateway

import (
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/gateway/internal/tape"
)

// coercion turns JSON input into values of input types, with the messages of graphql-js; it goes on after an error.
type coercion struct {
	schema   *schema
	variable string
	path     []string // ".name" and "[0]" below the variable
	locate   func(message string) Error
	errors   []Error
}

func (c *coercion) begin(variable string, locate func(string) Error) {
	c.variable, c.locate, c.path = variable, locate, c.path[:0]
}

func (c *coercion) report(message string) {
	switch {
	case len(c.errors) < maxVariableErrors:
		c.errors = append(c.errors, c.locate(message))
	case len(c.errors) == maxVariableErrors:
		c.errors = append(c.errors, newError(fault.ValidationError, "Too many errors processing variables, error limit reached. Execution aborted."))
	}
}

func (c *coercion) invalid(doc *tape.Doc, at uint32, reason string) {
	if len(c.errors) > maxVariableErrors {
		return
	}
	message := `Variable "$` + c.variable + `" got invalid value ` + doc.Inspect(at)
	if len(c.path) > 0 {
		message += ` at "` + c.variable + strings.Join(c.path, "") + `"`
	}
	c.report(message + "; " + reason)
}

func (c *coercion) value(dst []byte, doc *tape.Doc, at uint32, typ *ast.Type) []byte {
	if doc.Kind(at) == tape.Null {
		if typ.NonNull {
			c.invalid(doc, at, `Expected non-nullable type "`+typ.String()+`" not to be null.`)
		}
		return append(dst, "null"...)
	}
	if typ.Elem != nil {
		return c.list(dst, doc, at, typ.Elem)
	}
	switch def := c.schema.Types[typ.NamedType]; def.Kind {
	case ast.InputObject:
		return c.object(dst, doc, at, def)
	case ast.Enum:
		return c.enum(dst, doc, at, def)
	default:
		return c.scalar(dst, doc, at, def.Name)
	}
}

func (c *coercion) list(dst []byte, doc *tape.Doc, at uint32, item *ast.Type) []byte {
	dst = append(dst, '[')
	if doc.Kind(at) != tape.Array {
		return append(c.value(dst, doc, at, item), ']')
	}
	index := 0
	for i := at + 1; i < doc.End(at); i = doc.End(i) {
		if index > 0 {
			dst = append(dst, ',')
		}
		c.path = append(c.path, "["+strconv.Itoa(index)+"]")
		dst = c.value(dst, doc, i, item)
		c.path = c.path[:len(c.path)-1]
		index++
	}
	return append(dst, ']')
}

func (c *coercion) object(dst []byte, doc *tape.Doc, at uint32, def *ast.Definition) []byte {
	if doc.Kind(at) != tape.Object {
		c.invalid(doc, at, `Expected type "`+def.Name+`" to be an object.`)
		return dst
	}
	object := newMembers(dst)
	var only uint32 // the value of the last member given
	for _, field := range def.Fields {
		given, found := doc.Get(at, field.Name)
		switch {
		case found:
			c.path = append(c.path, "."+field.Name)
			object.dst = c.value(object.name(field.Name), doc, given, field.Type)
			c.path = c.path[:len(c.path)-1]
			only = given
		case field.DefaultValue != nil:
			object.dst, _ = c.schema.literal(object.name(field.Name), field.DefaultValue, field.Type, nil)
		case field.Type.NonNull:
			c.invalid(doc, at, `Field "`+field.Name+`" of required type "`+field.Type.String()+`" was not provided.`)
		}
	}
	for i := at + 1; i < doc.End(at); i = doc.End(i + 1) {
		if name := doc.Text(i); def.Fields.ForName(name) == nil {
			c.invalid(doc, at, `Field "`+short(name)+`" is not defined by type "`+def.Name+`".`)
		}
	}
	if def.Directives.ForName("oneOf") != nil {
		if object.count != 1 {
			c.invalid(doc, at, `Exactly one key must be specified for OneOf type "`+def.Name+`".`)
		} else if doc.Kind(only) == tape.Null {
			name := doc.Text(only - 1)
			c.path = append(c.path, "."+name)
			c.invalid(doc, only, `Field "`+name+`" must be non-null.`)
			c.path = c.path[:len(c.path)-1]
		}
	}
	return object.end()
}

func (c *coercion) enum(dst []byte, doc *tape.Doc, at uint32, def *ast.Definition) []byte {
	if doc.Kind(at) != tape.String {
		c.invalid(doc, at, `Enum "`+def.Name+`" cannot represent non-string value: `+doc.Inspect(at)+`.`)
		return dst
	}
	name := doc.Text(at)
	if !c.schema.enums[def.Name][name] {
		c.invalid(doc, at, `Value "`+short(name)+`" does not exist in "`+def.Name+`" enum.`)
	}
	return tape.AppendText(dst, name)
}

func (c *coercion) scalar(dst []byte, doc *tape.Doc, at uint32, name string) []byte {
	kind := doc.Kind(at)
	start := len(dst)
	switch name {
	case "Int":
		n, reason := wholeNumber(doc, at)
		if reason != "" {
			c.invalid(doc, at, reason+doc.Inspect(at))
		}
		return strconv.AppendInt(dst, n, 10)
	case "Float":
		f, ok := doc.Float(at)
		if kind != tape.Number || !ok {
			c.invalid(doc, at, "Float cannot represent non numeric value: "+doc.Inspect(at))
			return dst
		}
		return tape.AppendFloat(dst, f)
	case "String":
		if kind != tape.String {
			c.invalid(doc, at, "String cannot represent a non string value: "+doc.Inspect(at))
		}
		return doc.Append(dst, at)
	case "Boolean":
		if kind != tape.True && kind != tape.False {
			c.invalid(doc, at, "Boolean cannot represent a non boolean value: "+doc.Inspect(at))
		}
		return doc.Append(dst, at)
	case "ID":
		if kind == tape.String {
			return doc.Append(dst, at)
		}
		if !isWhole(doc, at) {
			c.invalid(doc, at, "ID cannot represent value: "+doc.Inspect(at))
			return dst
		}
		return append(doc.Append(append(dst, '"'), at), '"')
	default:
		dst = doc.Append(dst, at)
		if want := checkScalar(name, dst[start:]); want != "" {
			c.invalid(doc, at, name+" cannot represent value: "+doc.Inspect(at)+", want "+want+".")
		}
		return dst
	}
}

// wholeNumber is a number node as a 32-bit integer, or the beginning of the sentence that says why it is none.
func wholeNumber(doc *tape.Doc, at uint32) (int64, string) {
	if doc.Kind(at) != tape.Number || !isWhole(doc, at) {
		return 0, "Int cannot represent non-integer value: "
	}
	f, _ := doc.Float(at)
	if f > 1<<31-1 || f < -1<<31 {
		return 0, "Int cannot represent non 32-bit signed integer value: "
	}
	return int64(f), ""
}
