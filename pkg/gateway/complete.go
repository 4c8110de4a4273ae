package gateway

import (
	"fmt"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/gateway/internal/tape"
)

// writer is the state of writing the response in document order, as the GraphQL specification completes values: an error makes its field null, and
// where null is not allowed, the field around it.
type writer struct {
	buf      []byte
	path     []step
	errors   []Error
	pending  Error // the error on its way up while a call returns thrown
	located  bool  // pending has its path
	tooLarge bool  // nothing catches pending
	warned   bool  // wrong data was logged
	answered bool  // a root field is not null
	groups   any   // the caller's groups
}

// step is a place in the path: a response name, or an index when key is empty.
type step struct {
	key   string
	index int
}

// outcome is what became of a value.
type outcome uint8

const (
	written outcome = iota
	null            // null was written
	thrown          // nothing is to be written; pending says why
)

// raise starts an error at the present path.
func (x *execution) raise(p *problem) outcome {
	x.pending, x.located = newError(p.typ, p.message), false
	if p.at != nil {
		x.pending.Locations = []Location{x.document.location(p.at)}
	}
	return thrown
}

// wrong is raise for data of a function that does not fit the schema.
func (x *execution) wrong(f *field, format string, args ...any) outcome {
	message := fmt.Sprintf(format, args...)
	if !x.warned {
		x.warned = true
		x.config.Log.Error("graphql: data does not fit the schema", "field", f.parent.Name+"."+f.name, "request_id", x.requestID, "error", message)
	}
	return x.raise(&problem{typ: fault.InternalError, message: message})
}

// caught decides at a nullable or non-null place what becomes of a thrown value that began at byte start.
func (x *execution) caught(f *field, nonNull bool, start int) outcome {
	if !x.located && !x.tooLarge {
		x.locate(f)
	}
	if nonNull || x.tooLarge {
		return thrown
	}
	x.errors = append(x.errors, x.pending)
	x.buf = append(x.buf[:start], "null"...)
	return null
}

func (x *execution) locate(f *field) {
	x.located = true
	if x.pending.Locations == nil {
		for _, n := range f.nodes {
			x.pending.Locations = append(x.pending.Locations, x.document.location(n.Position))
		}
	}
	for _, s := range x.path {
		if s.key != "" {
			x.pending.Path = append(x.pending.Path, s.key)
		} else {
			x.pending.Path = append(x.pending.Path, s.index)
		}
	}
}

// member writes a field of an object as its i-th member.
func (x *execution) member(i int, f *field, parent value) outcome {
	if i > 0 {
		x.buf = append(x.buf, ',')
	}
	x.buf = append(x.buf, f.quoted...)
	x.path = append(x.path, step{key: f.key})
	start := len(x.buf)
	out := x.field(f, parent)
	if out == thrown {
		out = x.caught(f, f.def.Type.NonNull, start)
	}
	x.path = x.path[:len(x.path)-1]
	if len(x.path) == 0 && out == written {
		x.answered = true
	}
	return out
}

func (x *execution) field(f *field, parent value) outcome {
	if x.denied(f) {
		return x.raise(x.unauthorized(f))
	}
	if f.slot >= 0 {
		if s := x.prepareSlot(f); s.problem != nil {
			return x.raise(s.problem)
		}
	}
	switch {
	case f.fn != nil:
		a := x.slots[f.slot].of(parent)
		if a == nil { // the parent is no object, so nothing was asked about it
			a = &answer{}
		}
		if a.problem != nil {
			return x.raise(a.problem)
		}
		return x.complete(f, f.def.Type, a.value)
	case f.meta():
		return x.metaField(f)
	default:
		return x.complete(f, f.def.Type, parent.member(f.name))
	}
}

func (x *execution) complete(f *field, typ *ast.Type, v value) outcome {
	if v.null() {
		if typ.NonNull {
			return x.wrong(f, "Cannot return null for non-nullable field %s.%s.", f.parent.Name, f.name)
		}
		x.buf = append(x.buf, "null"...)
		return null
	}
	if typ.Elem != nil {
		return x.list(f, typ.Elem, v)
	}
	if f.leaf.kind != composite {
		var refusal string
		if x.buf, refusal = f.leaf.append(x.buf, v.doc, v.at); refusal != "" {
			return x.wrong(f, "%s", refusal)
		}
		return written
	}
	if f.concrete != nil {
		return x.object(f.concrete, v)
	}
	name := typename(v)
	if o := f.abstract[name]; o != nil {
		return x.object(o, v)
	}
	return x.strange(f, typ.NamedType, v, name)
}

func (x *execution) list(f *field, item *ast.Type, v value) outcome {
	if v.doc.Kind(v.at) != tape.Array {
		return x.wrong(f, `Expected Iterable, but did not find one for field "%s.%s".`, f.parent.Name, f.name)
	}
	x.buf = append(x.buf, '[')
	x.path = append(x.path, step{})
	index, end := 0, v.doc.End(v.at)
	for i := v.at + 1; i < end; i = v.doc.End(i) {
		if x.hidden(f, value{v.doc, i}) {
			continue
		}
		if index > 0 {
			x.buf = append(x.buf, ',')
		}
		x.path[len(x.path)-1].index = index
		start := len(x.buf)
		if x.complete(f, item, value{v.doc, i}) == thrown && x.caught(f, item.NonNull, start) == thrown {
			x.path = x.path[:len(x.path)-1]
			return thrown
		}
		index++
	}
	x.path = x.path[:len(x.path)-1]
	x.buf = append(x.buf, ']')
	return written
}

func (x *execution) object(o *object, v value) outcome {
	if len(x.buf) > x.config.MaxAnswer {
		x.tooLarge = true
		return thrown
	}
	v = x.followed(o, v)
	x.buf = append(x.buf, '{')
	for i, f := range o.fields {
		if f.name == "__typename" {
			if i > 0 {
				x.buf = append(x.buf, ',')
			}
			x.buf = tape.AppendText(append(x.buf, f.quoted...), o.def.Name)
			continue
		}
		if x.member(i, f, v) == thrown {
			return thrown
		}
	}
	x.buf = append(x.buf, '}')
	return written
}

// strange raises the error of an object whose __typename does not belong to the abstract type.
func (x *execution) strange(f *field, abstract string, v value, name string) outcome {
	typ := x.schema.Types[name]
	switch {
	case v.member("__typename").null() || name == "":
		return x.wrong(f, `Abstract type "%s" must resolve to an Object type at runtime for field "%s.%s". Either the "%s" type should `+
			`provide a "resolveType" function or each possible type should provide an "isTypeOf" function.`, abstract, f.parent.Name, f.name, abstract)
	case typ == nil:
		return x.wrong(f, `Abstract type "%s" was resolved to a type "%s" that does not exist inside the schema.`, abstract, short(name))
	case typ.Kind != ast.Object:
		return x.wrong(f, `Abstract type "%s" was resolved to a non-object type "%s".`, abstract, name)
	default:
		return x.wrong(f, `Runtime Object type "%s" is not a possible type for "%s".`, name, abstract)
	}
}

// unauthorized is AppSync's sentence.
func (x *execution) unauthorized(f *field) *problem {
	return &problem{typ: fault.Unauthorized, message: "Not Authorized to access " + f.name + " on type " + f.parent.Name}
}

// denied reports whether the caller may not ask for the field at all.
func (x *execution) denied(f *field) bool {
	if f.access.platform {
		return true
	}
	if len(f.access.groups) == 0 {
		return false
	}
	var own []string
	switch groups := x.groups.(type) {
	case []string:
		own = groups
	case []any:
		for _, g := range groups {
			own = append(own, fmt.Sprint(g))
		}
	}
	return !slices.ContainsFunc(own, func(g string) bool { return slices.Contains(f.access.groups, g) })
}
