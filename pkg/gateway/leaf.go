package gateway

import (
	"math"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/agentplatform/agentplatform/pkg/gateway/internal/tape"
)

// leaf is how the values of a field's scalar or enum are written; its zero value is for a type that has a selection.
type leaf struct {
	kind   leafKind
	values map[string]bool // of an enum
	typ    string
}

type leafKind uint8

const (
	composite leafKind = iota
	leafString
	leafID
	leafInt
	leafFloat
	leafBoolean
	leafEnum
	leafText // a scalar of AppSync that is always a string
	leafJSON // AWSJSON: a string; other JSON values are written into one
	leafAny  // any JSON value
)

func (s *schema) leaf(f *field) leaf {
	def := s.Types[f.def.Type.Name()]
	l := leaf{typ: def.Name}
	switch {
	case def.Kind == ast.Enum:
		l.kind, l.values = leafEnum, s.enums[def.Name]
	case def.Kind != ast.Scalar:
	case def.Name == "String":
		l.kind = leafString
	case def.Name == "ID":
		l.kind = leafID
	case def.Name == "Int", def.Name == "AWSTimestamp":
		l.kind = leafInt
	case def.Name == "Float":
		l.kind = leafFloat
	case def.Name == "Boolean":
		l.kind = leafBoolean
	case def.Name == "AWSJSON":
		l.kind = leafJSON
	case scalars[def.Name].want != "":
		l.kind = leafText
	default:
		l.kind = leafAny
	}
	return l
}

// append writes a non-null value as graphql-js serialises it; what cannot be is refused with graphql-js's message.
func (l *leaf) append(dst []byte, doc *tape.Doc, at uint32) (out []byte, refusal string) {
	kind := doc.Kind(at)
	switch l.kind {
	case leafString:
		switch kind {
		case tape.String:
			return doc.Append(dst, at), ""
		case tape.Number:
			if _, ok := doc.Float(at); ok {
				return append(doc.Append(append(dst, '"'), at), '"'), ""
			}
		case tape.True, tape.False:
			return append(append(append(dst, '"'), doc.Raw(at)...), '"'), ""
		}
		return dst, "String cannot represent value: " + doc.Inspect(at)
	case leafID:
		if kind == tape.String {
			return doc.Append(dst, at), ""
		}
		if isWhole(doc, at) {
			return append(doc.Append(append(dst, '"'), at), '"'), ""
		}
		return dst, "ID cannot represent value: " + doc.Inspect(at)
	case leafInt:
		return l.appendInt(dst, doc, at)
	case leafFloat:
		switch f, ok := number(doc, at); {
		case kind == tape.Number && ok:
			return doc.Append(dst, at), ""
		case ok:
			return tape.AppendFloat(dst, f), ""
		}
		return dst, "Float cannot represent non numeric value: " + doc.Inspect(at)
	case leafBoolean:
		switch kind {
		case tape.True, tape.False:
			return append(dst, doc.Raw(at)...), ""
		case tape.Number:
			if f, ok := doc.Float(at); ok {
				return strconv.AppendBool(dst, f != 0), ""
			}
		}
		return dst, "Boolean cannot represent a non boolean value: " + doc.Inspect(at)
	case leafEnum:
		if kind == tape.String && l.known(doc, at) {
			return doc.Append(dst, at), ""
		}
		return dst, `Enum "` + l.typ + `" cannot represent value: ` + doc.Inspect(at)
	case leafJSON:
		if kind == tape.String {
			return doc.Append(dst, at), ""
		}
		return tape.AppendText(dst, string(doc.Append(nil, at))), ""
	case leafText:
		if kind == tape.String {
			return doc.Append(dst, at), ""
		}
		return dst, l.typ + " cannot represent value: " + doc.Inspect(at)
	default:
		return doc.Append(dst, at), ""
	}
}

func (l *leaf) known(doc *tape.Doc, at uint32) bool {
	if n := &doc.Nodes[at]; !n.Escaped {
		return l.values[string(doc.Src[n.Start+1:n.End-1])]
	}
	return l.values[doc.Text(at)]
}

func (l *leaf) appendInt(dst []byte, doc *tape.Doc, at uint32) ([]byte, string) {
	f, ok := number(doc, at)
	if !ok || f != math.Trunc(f) {
		return dst, l.typ + " cannot represent non-integer value: " + doc.Inspect(at)
	}
	if l.typ == "Int" && (f > 1<<31-1 || f < -1<<31) {
		return dst, "Int cannot represent non 32-bit signed integer value: " + doc.Inspect(at)
	}
	return tape.AppendFloat(dst, f), ""
}

// number is a node as JavaScript's Number() takes it, for the types that Int and Float accept: numbers, booleans, and strings.
func number(doc *tape.Doc, at uint32) (f float64, ok bool) {
	switch doc.Kind(at) {
	case tape.Number:
		if i, ok := doc.Int(at); ok {
			return float64(i), true
		}
		return doc.Float(at)
	case tape.True:
		return 1, true
	case tape.False:
		return 0, true
	case tape.String:
		text := doc.Text(at)
		if text == "" || strings.ContainsAny(text, "_nNpPxX") { // no inf, no nan, no Go spellings
			return 0, false
		}
		f, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		return f, err == nil
	}
	return 0, false
}

func isWhole(doc *tape.Doc, at uint32) bool {
	if doc.Kind(at) != tape.Number {
		return false
	}
	if _, ok := doc.Int(at); ok {
		return true
	}
	f, ok := doc.Float(at)
	return ok && f == math.Trunc(f)
}
