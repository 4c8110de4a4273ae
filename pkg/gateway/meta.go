package gateway

import (
	"bytes"

	"github.com/agentplatform/agentplatform/pkg/gateway/internal/tape"
)

// meta reports whether the field is one of the three that every schema has.
func (f *field) meta() bool {
	return f.name == "__typename" || f.name == "__schema" || f.name == "__type"
}

// metaField writes __typename at the root, __schema and __type.
func (x *execution) metaField(f *field) outcome {
	switch f.name {
	case "__typename":
		x.buf = tape.AppendText(x.buf, f.parent.Name)
		return written
	case "__schema":
		return x.complete(f, f.def.Type, value{x.schema.introspection, 0})
	}
	var args tape.Doc
	if err := args.Parse(x.slots[f.slot].args); err != nil {
		return x.wrong(f, "%v", err)
	}
	name := value{&args, 0}.member("name")
	if at, ok := x.schema.typeAt[args.Text(name.at)]; ok {
		return x.complete(f, f.def.Type, value{x.schema.introspection, at})
	}
	return x.complete(f, f.def.Type, value{})
}

// followed is the type that a reference in the introspection document names; any other value is itself.
func (x *execution) followed(o *object, v value) value {
	if v.doc == x.schema.introspection && o.def.Name == "__Type" && v.doc.Kind(v.at) == tape.String {
		return value{v.doc, x.schema.typeAt[v.doc.Text(v.at)]}
	}
	return v
}

// hidden reports whether an introspected field, argument, value or directive is deprecated and was not asked for.
func (x *execution) hidden(f *field, v value) bool {
	if v.doc != x.schema.introspection || f.slot < 0 || bytes.Contains(x.slots[f.slot].args, []byte(`"includeDeprecated":true`)) {
		return false
	}
	deprecated := v.member("isDeprecated")
	return deprecated.doc != nil && deprecated.doc.Kind(deprecated.at) == tape.True
}
