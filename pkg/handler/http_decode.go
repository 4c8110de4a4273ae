package handler

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/agentplatform/agentplatform/pkg/fault"
)

// Decode reads a body into the struct that v points to, strictly: one JSON object in valid UTF-8, nothing behind it, no name twice at any
// depth, and at the top only names that the struct has, in that spelling. Numbers that go into an `any` stay as they are written
// (json.Number). What is wrong is a fault that says what.
func Decode(body []byte, v any) error {
	if !utf8.Valid(body) {
		return fault.Invalid("the body is not valid UTF-8")
	}
	names, err := topNames(body)
	if err != nil {
		return err
	}
	known := jsonNames(reflect.TypeOf(v).Elem())
	for _, name := range names {
		if !known[name] {
			return fault.Invalid("the body has a member that is not known: %q", short(name))
		}
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	d.DisallowUnknownFields() // below the top
	if err := d.Decode(v); err != nil {
		if typ := new(json.UnmarshalTypeError); errors.As(err, &typ) && typ.Field != "" {
			return fault.Invalid("%s must not be a JSON %s", short(typ.Field), typ.Value)
		}
		return fault.Invalid("the body: %s", short(strings.TrimPrefix(err.Error(), "json: ")))
	}
	return nil
}

// topNames goes through the whole body and gives the names of its top-level members.
func topNames(body []byte) (names []string, err error) {
	d := json.NewDecoder(bytes.NewReader(body))
	var open []map[string]bool // the names so far of each object around the current place; nil for an array
	named := false             // the next string is a value
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) && names != nil && len(open) == 0 {
			return names, nil
		}
		if err != nil {
			return nil, fault.Invalid("the body is not valid JSON")
		}
		if names == nil {
			if token != json.Delim('{') {
				return nil, fault.Invalid("the body must be a JSON object")
			}
			names = []string{}
		} else if len(open) == 0 {
			return nil, fault.Invalid("something follows the body's JSON object")
		}
		if name, ok := token.(string); ok && !named && open[len(open)-1] != nil {
			if open[len(open)-1][name] {
				return nil, fault.Invalid("the body has the member %q twice", short(name))
			}
			if open[len(open)-1][name] = true; len(open) == 1 {
				names = append(names, name)
			}
			named = true
			continue
		}
		named = false
		switch token {
		case json.Delim('{'):
			open = append(open, map[string]bool{})
		case json.Delim('['):
			open = append(open, nil)
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
		}
	}
}

// jsonNames are the names of a struct's members in JSON.
func jsonNames(t reflect.Type) map[string]bool {
	names := map[string]bool{}
	for i := range t.NumField() {
		if t.Field(i).Anonymous {
			maps.Copy(names, jsonNames(t.Field(i).Type))
			continue
		}
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names[name] = name != "" && name != "-"
	}
	return names
}

// short keeps a caller's words from filling an answer.
func short(s string) string {
	if len(s) > 100 {
		return strings.ToValidUTF8(s[:100], "") + "…"
	}
	return s
}
