package jsonschema

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

// The drafts, as the values of $schema without what is before and behind.
var drafts = map[string]int{
	"json-schema.org/draft-06/schema":      6,
	"json-schema.org/draft-07/schema":      7,
	"json-schema.org/draft/2019-09/schema": 2019,
	"json-schema.org/draft/2020-12/schema": 2020,
}

// since and until are the first and the last draft that knows a keyword; all drafts know the others.
var (
	since = map[string]int{"if": 7, "then": 7, "else": 7, "dependentSchemas": 2019, "dependentRequired": 2019, "minContains": 2019, "maxContains": 2019,
		"unevaluatedItems": 2019, "unevaluatedProperties": 2019, "$anchor": 2019, "$defs": 2019, "prefixItems": 2020}
	until = map[string]int{"additionalItems": 2019}
)

// compiler makes nodes of a document. Places in it are JSON pointers.
type compiler struct {
	doc       any
	draft     int
	bases     map[string]string // by place: the URI that references in it are relative to
	resources map[string]string // places by URI
	anchors   map[string]string // places by URI with fragment
	nodes     map[string]*node  // by place
	order     []*node           // the nodes as they were met
	states    int               // of all patterns
	tracks    bool
	err       error // the first
}

func compile(doc any) (*Schema, error) {
	c := &compiler{doc: doc, draft: 2020, bases: map[string]string{}, resources: map[string]string{}, anchors: map[string]string{}, nodes: map[string]*node{}}
	if m, ok := doc.(map[string]any); ok && m["$schema"] != nil {
		name, _ := m["$schema"].(string)
		_, address, _ := strings.Cut(strings.TrimSuffix(name, "#"), "://")
		if c.draft, ok = drafts[address]; !ok {
			return nil, fmt.Errorf("at '/$schema': %s is no draft that is known, and references out of the schema are not followed", show(m["$schema"]))
		}
	}
	places := c.identify("", doc, location, nil)
	for _, at := range places { // also those that nothing leads to: an error is told where it is
		c.node(at)
	}
	if c.err == nil {
		c.err = endless(c.order)
	}
	if c.err != nil {
		return nil, c.err
	}
	return &Schema{c.nodes[""], c.tracks}, nil
}

func (c *compiler) fail(at, format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("at '%s': %s", at, fmt.Sprintf(format, args...))
	}
}

// node is the schema at a place.
func (c *compiler) node(at string) *node {
	if n := c.nodes[at]; n != nil || c.err != nil {
		return n
	}
	n := &node{}
	c.nodes[at] = n
	c.order = append(c.order, n)
	switch v, _ := c.find(at); v := v.(type) {
	case bool:
		n.never = !v
	case map[string]any:
		c.read(n, keywords{c, at, c.known(v)})
	default:
		c.fail(at, "a schema is an object or a boolean")
	}
	return n
}

// known are the keywords of a schema that its draft knows.
func (c *compiler) known(m map[string]any) map[string]any {
	if ref, ok := m["$ref"]; ok && c.draft <= 7 {
		return map[string]any{"$ref": ref} // it is alone
	}
	out := make(map[string]any, len(m))
	for k, v := range m {
		if last, ended := until[k]; c.draft >= since[k] && (!ended || c.draft <= last) {
			out[k] = v
		}
	}
	return out
}

// read makes a node of its keywords.
func (c *compiler) read(n *node, k keywords) {
	for _, keyword := range []string{"$dynamicRef", "$recursiveRef"} {
		if k.has(keyword) {
			c.fail(k.at, "$dynamicRef and $recursiveRef are not supported")
		}
	}
	if ref, ok := k.text("$ref"); ok {
		if at, ok := c.resolve(k.at, ref); ok {
			n.all = append(n.all, c.node(at))
		}
	}
	n.types = k.types()
	n.values = k.values()
	for i := range measures {
		if limit, text := k.number(measures[i].keyword, measures[i].kind); limit != nil {
			n.bounds = append(n.bounds, bound{&measures[i], limit, text})
		}
	}
	if text, ok := k.text("pattern"); ok {
		n.pattern = c.pattern(k.at+"/pattern", text)
	}
	n.unique = k.flag("uniqueItems")
	n.required = k.names("required")
	n.needs = k.needs("dependentRequired")

	n.not, n.when, n.then, n.otherwise = k.schema("not"), k.schema("if"), k.schema("then"), k.schema("else")
	if n.when == nil {
		n.then, n.otherwise = nil, nil
	}
	n.all, n.any, n.one = append(n.all, k.schemas("allOf")...), k.schemas("anyOf"), k.schemas("oneOf")
	n.dependents = k.named("dependentSchemas")
	for _, d := range k.dependencies() {
		if d.node != nil {
			n.dependents = append(n.dependents, d.named)
		} else {
			n.needs = append(n.needs, d.need)
		}
	}

	if _, list := k.m["items"].([]any); list && c.draft < 2020 {
		n.prefix, n.items = k.schemas("items"), k.schema("additionalItems")
	} else {
		n.prefix, n.items = k.schemas("prefixItems"), k.schema("items")
	}
	n.contains, n.containedCount = k.schema("contains"), c.draft >= 2020
	n.leastContained, _ = k.number("minContains", whole)
	n.mostContained, _ = k.number("maxContains", whole)
	n.restOfItems = k.schema("unevaluatedItems")

	n.properties = map[string]*node{}
	for _, p := range k.named("properties") {
		n.properties[p.name] = p.node
	}
	for _, p := range k.named("patternProperties") {
		n.patterns = append(n.patterns, patterned{c.pattern(k.at+"/patternProperties", p.name), p.node})
	}
	n.additional, n.nameOfAny, n.restOfMembers = k.schema("additionalProperties"), k.schema("propertyNames"), k.schema("unevaluatedProperties")
	c.tracks = c.tracks || n.restOfItems != nil || n.restOfMembers != nil
}

// pattern compiles one, when it and those before are not too large: {1000} makes a thousand states of a byte.
func (c *compiler) pattern(at, text string) *pattern {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		c.fail(at, "%v", err)
		return nil
	}
	p := &pattern{states: states(parsed)}
	if c.states += p.states; c.states > maxStates {
		c.fail(at, "the patterns are too large")
		return nil
	}
	if p.Regexp, err = regexp.Compile(text); err != nil {
		c.fail(at, "%v", err)
	}
	return p
}

// states is about how many states RE2 makes of a pattern.
func states(re *syntax.Regexp) int {
	n := 1
	if re.Op == syntax.OpLiteral {
		n = len(re.Rune)
	}
	for _, sub := range re.Sub {
		n += states(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return min(n, maxStates+1)
}
