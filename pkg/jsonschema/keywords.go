package jsonschema

import (
	"encoding/json"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// keywords are those of one schema, read with their types.
type keywords struct {
	*compiler
	at string
	m  map[string]any
}

func (k keywords) has(keyword string) bool { _, ok := k.m[keyword]; return ok }

func (k keywords) schema(keyword string) *node {
	if !k.has(keyword) {
		return nil
	}
	return k.node(below(k.at, keyword))
}

func (k keywords) schemas(keyword string) (out []*node) {
	list, ok := k.m[keyword].([]any)
	if k.has(keyword) && (!ok || len(list) == 0) {
		k.fail(below(k.at, keyword), "must be a list of schemas")
	}
	for i := range list {
		out = append(out, k.node(below(k.at, keyword, strconv.Itoa(i))))
	}
	return out
}

// members are those of a keyword's object, by name.
func (k keywords) members(keyword string) (m map[string]any, names []string) {
	m, ok := k.m[keyword].(map[string]any)
	if k.has(keyword) && !ok {
		k.fail(below(k.at, keyword), "must be an object")
	}
	return m, slices.Sorted(maps.Keys(m))
}

func (k keywords) named(keyword string) (out []named) {
	_, names := k.members(keyword)
	for _, name := range names {
		out = append(out, named{name, k.node(below(k.at, keyword, name))})
	}
	return out
}

func (k keywords) needs(keyword string) (out []need) {
	m, names := k.members(keyword)
	for _, name := range names {
		out = append(out, need{name, k.strings(m[name], keyword, name)})
	}
	return out
}

// dependency is a named schema or names, of draft 7.
type dependency struct {
	named
	need
}

func (k keywords) dependencies() (out []dependency) {
	const keyword = "dependencies"
	m, names := k.members(keyword)
	for _, name := range names {
		if _, list := m[name].([]any); list {
			out = append(out, dependency{need: need{name, k.strings(m[name], keyword, name)}})
		} else {
			out = append(out, dependency{named: named{name, k.node(below(k.at, keyword, name))}})
		}
	}
	return out
}

func (k keywords) names(keyword string) []string {
	if !k.has(keyword) {
		return nil
	}
	return k.strings(k.m[keyword], keyword)
}

func (k keywords) strings(v any, tokens ...string) (out []string) {
	list, ok := v.([]any)
	for _, item := range list {
		s, text := item.(string)
		ok = ok && text
		out = append(out, s)
	}
	if !ok {
		k.fail(below(k.at, tokens...), "must be a list of strings")
	}
	return out
}

func (k keywords) text(keyword string) (string, bool) {
	s, ok := k.m[keyword].(string)
	if k.has(keyword) && !ok {
		k.fail(below(k.at, keyword), "must be a string")
	}
	return s, ok
}

func (k keywords) flag(keyword string) bool {
	b, ok := k.m[keyword].(bool)
	if k.has(keyword) && !ok {
		k.fail(below(k.at, keyword), "must be true or false")
	}
	return b
}

func (k keywords) number(keyword string, of kind) (*big.Rat, string) {
	if !k.has(keyword) {
		return nil, ""
	}
	text, _ := k.m[keyword].(json.Number)
	r, ok := new(big.Rat).SetString(string(text))
	if !ok || of == whole && (!r.IsInt() || r.Sign() < 0) || of == positive && r.Sign() <= 0 {
		k.fail(below(k.at, keyword), "must be a %s", of)
		return nil, ""
	}
	return r, string(text)
}

func (k keywords) types() []string {
	if !k.has("type") {
		return nil
	}
	out := []string{}
	if one, ok := k.m["type"].(string); ok {
		out = append(out, one)
	} else {
		out = k.strings(k.m["type"], "type")
	}
	for _, t := range out {
		if !slices.Contains(types, t) {
			k.fail(below(k.at, "type"), "value must be one of '%s'", strings.Join(types, "', '"))
		}
	}
	return out
}

// values are what const and enum allow.
func (k keywords) values() (out []values) {
	if one, ok := k.m["const"]; ok {
		out = append(out, values{map[string]bool{canonical(one): true}, "value must be " + show(one)})
	}
	if many, ok := k.m["enum"].([]any); ok {
		allowed, shown := map[string]bool{}, make([]string, len(many))
		for i, v := range many {
			allowed[canonical(v)], shown[i] = true, show(v)
		}
		out = append(out, values{allowed, "value must be one of " + strings.Join(shown, ", ")})
	} else if k.has("enum") {
		k.fail(below(k.at, "enum"), "must be a list")
	}
	return out
}
