package asl

import (
	"fmt"
	"slices"
	"strings"
)

// template is a payload template: a JSON value in which the value of a field whose name ends in .$ is a path or an intrinsic function.
type template struct {
	value  any // of a part that is the same for all data, which is most
	fields []field
	items  []*template
	source source
}

// field is one of an object that is not the same for all data.
type field struct {
	name string
	*template
}

// source is a path or a call: at most one of them.
type source struct {
	path *path
	call *call
}

func (t *template) constant() bool {
	return t.fields == nil && t.items == nil && t.source == source{}
}

// parseSource reads a path or an intrinsic function.
func parseSource(text string) (source, error) {
	if isCall(text) {
		c, err := parseCall(text)
		return source{call: c}, err
	}
	p, err := parsePath(text)
	return source{path: p}, err
}

// template reads one at a place in a definition.
func (r *reader) template(value any, at string) *template {
	switch v := value.(type) {
	case []any:
		t, changes := &template{items: make([]*template, len(v))}, false
		for i, item := range v {
			t.items[i] = r.template(item, fmt.Sprintf("%s/%d", at, i))
			changes = changes || !t.items[i].constant()
		}
		if changes {
			return t
		}
	case map[string]any:
		t, changes := &template{fields: make([]field, 0, len(v))}, false
		for _, name := range names(v) {
			plain, isSource := strings.CutSuffix(name, ".$")
			place := at + "/" + pointed(name)
			if !isSource {
				inner := r.template(v[name], place)
				changes = changes || !inner.constant()
				t.fields = append(t.fields, field{name, inner})
				continue
			}
			changes = true
			if _, twice := v[plain]; twice {
				r.problem(schemaFailed, place, "There is a field %q, too", clip(plain))
			}
			text, isText := v[name].(string)
			if !isText {
				r.problem(schemaFailed, place, "The value of a field that ends in .$ is a path or an intrinsic function, as a string")
				continue
			}
			source, err := parseSource(text)
			if err != nil {
				r.problem(schemaFailed, place, "%s", err)
			}
			t.fields = append(t.fields, field{plain, &template{source: source}})
		}
		if changes {
			return t
		}
	}
	return &template{value: value}
}

// filled is what a template makes of the data.
func (e *evaluation) filled(t *template) any {
	if !e.spend(1) {
		return nil
	}
	switch {
	case t.fields != nil:
		object := make(map[string]any, len(t.fields))
		for _, f := range t.fields {
			if f.source.path != nil {
				value, has := e.find(f.source.path)
				if !has {
					e.fail(ErrorRuntime, "The JSONPath '%s' specified for the field '%s.$' could not be found in the input", f.source.path.text, f.name)
				}
				object[f.name] = value
				continue
			}
			object[f.name] = e.filled(f.template)
		}
		return object
	case t.items != nil:
		list := slices.Grow([]any{}, len(t.items))
		for _, item := range t.items {
			list = append(list, e.filled(item))
		}
		return list
	case t.source.call != nil:
		return e.run(t.source.call)
	}
	return t.value
}
