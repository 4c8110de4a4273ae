package jsonschema

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// location is the schema's own, which references within it resolve against.
const location = "schema:///"

// holders are the keywords with schemas in them: by themselves or in a list, or (true) as members of an object.
var holders = map[string]bool{
	"not": false, "if": false, "then": false, "else": false, "contains": false, "items": false, "additionalItems": false, "prefixItems": false, "unevaluatedItems": false,
	"additionalProperties": false, "propertyNames": false, "unevaluatedProperties": false, "contentSchema": false, "allOf": false, "anyOf": false, "oneOf": false,
	"properties": true, "patternProperties": true, "dependentSchemas": true, "dependencies": true, "$defs": true, "definitions": true,
}

// identify notes the URIs of the schema at a place and of those in it, and gives their places.
func (c *compiler) identify(at string, v any, base string, places []string) []string {
	m, ok := v.(map[string]any)
	if !ok {
		return append(places, at)
	}
	m = c.known(m)
	if at == "" {
		c.resources[base] = at
	}
	if id, ok := m["$id"].(string); ok {
		if name, isName := strings.CutPrefix(id, "#"); isName && c.draft <= 7 {
			c.anchors[base+"#"+name] = at
		} else {
			base = c.absolute(at, base, id)
			c.resources[base] = at
		}
	}
	c.bases[at] = base
	for _, keyword := range []string{"$anchor", "$dynamicAnchor"} {
		if name, ok := m[keyword].(string); ok {
			c.anchors[base+"#"+name] = at
		}
	}
	places = append(places, at)
	for _, keyword := range slices.Sorted(maps.Keys(m)) {
		members, holds := holders[keyword]
		switch sub := m[keyword].(type) {
		case map[string]any:
			if !holds {
				continue
			}
			if !members {
				places = c.identify(below(at, keyword), sub, base, places)
				continue
			}
			for _, name := range slices.Sorted(maps.Keys(sub)) {
				if _, list := sub[name].([]any); !list || keyword != "dependencies" {
					places = c.identify(below(at, keyword, name), sub[name], base, places)
				}
			}
		case []any:
			if holds && !members {
				for i, item := range sub {
					places = c.identify(below(at, keyword, strconv.Itoa(i)), item, base, places)
				}
			}
		}
	}
	return places
}

// absolute is a URI without its fragment, relative to base.
func (c *compiler) absolute(at, base, ref string) string {
	u, err := url.Parse(base)
	if err == nil {
		u, err = u.Parse(ref)
	}
	if err != nil {
		c.fail(at, "%s is no URI", show(ref))
		return base
	}
	u.Fragment, u.RawFragment = "", ""
	return u.String()
}

// resolve is the place that a reference at a place leads to.
func (c *compiler) resolve(at, ref string) (string, bool) {
	nearest := at
	for c.bases[nearest] == "" && nearest != "" { // the place may be one where no schema was expected
		nearest = nearest[:strings.LastIndexByte(nearest, '/')]
	}
	target := c.absolute(at, c.bases[nearest], ref)
	root, known := c.resources[target]
	if !known {
		c.fail(at, "%s: references out of the schema are not followed", show(ref))
		return "", false
	}
	_, fragment, _ := strings.Cut(ref, "#")
	if name, err := url.PathUnescape(fragment); err == nil {
		fragment = name
	}
	if fragment == "" {
		return root, true
	}
	found := root + fragment
	if !strings.HasPrefix(fragment, "/") {
		found, known = c.anchors[target+"#"+fragment]
	}
	if _, ok := c.find(found); !ok || !known {
		c.fail(at, "%s is not found", show(ref))
		return "", false
	}
	return found, true
}

// find is what is at a place.
func (c *compiler) find(at string) (any, bool) {
	v := c.doc
	if at == "" {
		return v, true
	}
	for _, token := range strings.Split(at, "/")[1:] {
		switch in := v.(type) {
		case map[string]any:
			member, ok := in[strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")]
			if !ok {
				return nil, false
			}
			v = member
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(in) {
				return nil, false
			}
			v = in[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// below is the place below another one.
func below(at string, tokens ...string) string {
	for _, token := range tokens {
		at += "/" + strings.ReplaceAll(strings.ReplaceAll(token, "~", "~0"), "/", "~1")
	}
	return at
}
