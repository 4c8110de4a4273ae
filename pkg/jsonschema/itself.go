package jsonschema

import (
	"fmt"
	"slices"
	"strings"
)

// itself is what n asks for without other schemas.
func (e *evaluation) itself(n *node, v any, at *place, _ seen) *problem {
	if n.never {
		return plain(at, "false schema")
	}
	if n.types != nil && !slices.ContainsFunc(n.types, func(t string) bool { return t == typeOf(v) || t == "integer" && isWhole(v) }) {
		return plain(at, "got "+typeOf(v)+", want "+strings.Join(n.types, " or "))
	}
	for _, some := range n.values {
		if !some.allowed[canonical(v)] {
			return plain(at, some.text)
		}
	}
	for _, b := range n.bounds {
		if got := b.of(v); got != nil && !b.holds(got, b.limit) {
			return &problem{at, func() string { return fmt.Sprintf("%s: got %s, want %s", b.keyword, got.RatString(), b.text) }}
		}
	}
	switch v := v.(type) {
	case string:
		if n.pattern != nil && !n.pattern.MatchString(v) {
			return &problem{at, func() string { return show(v) + " does not match pattern " + show(n.pattern.String()) }}
		}
	case []any:
		if n.unique {
			return unique(v, at)
		}
	case map[string]any:
		return required(n, v, at)
	}
	return nil
}

func isWhole(v any) bool {
	r := number(v)
	return r != nil && r.IsInt()
}

func unique(v []any, at *place) *problem {
	first := make(map[string]int, len(v))
	for i, item := range v {
		text := canonical(item)
		if j, twice := first[text]; twice {
			return plain(at, fmt.Sprintf("items at %d and %d are equal", j, i))
		}
		first[text] = i
	}
	return nil
}

func required(n *node, v map[string]any, at *place) *problem {
	var missing []string
	for _, name := range n.required {
		if _, ok := v[name]; !ok {
			missing = append(missing, name)
		}
	}
	if len(missing) == 1 {
		return &problem{at, func() string { return "missing property " + showAll(missing) }}
	}
	if missing != nil {
		return &problem{at, func() string { return "missing properties " + showAll(missing) }}
	}
	for _, need := range n.needs {
		if _, ok := v[need.name]; !ok {
			continue
		}
		for _, name := range need.names {
			if _, ok := v[name]; !ok {
				return &problem{at, func() string { return "missing property " + show(name) + ", which " + show(need.name) + " asks for" }}
			}
		}
	}
	return nil
}
