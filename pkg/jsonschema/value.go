package jsonschema

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

var types = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case json.Number:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	default:
		return "object"
	}
}

// kind is what a limit must be.
type kind string

const (
	anyNumber kind = "number"
	positive  kind = "number greater than 0"
	whole     kind = "whole number, not negative"
)

// measure is what a limit holds for: a number, or a length.
type measure struct {
	keyword string
	kind    kind
	of      func(v any) *big.Rat // nil: the limit does not concern v
	holds   func(got, limit *big.Rat) bool
}

var measures = []measure{
	{"minimum", anyNumber, number, least},
	{"maximum", anyNumber, number, most},
	{"exclusiveMinimum", anyNumber, number, func(got, limit *big.Rat) bool { return got.Cmp(limit) > 0 }},
	{"exclusiveMaximum", anyNumber, number, func(got, limit *big.Rat) bool { return got.Cmp(limit) < 0 }},
	{"multipleOf", positive, number, func(got, limit *big.Rat) bool { return new(big.Rat).Quo(got, limit).IsInt() }},
	{"minLength", whole, characters, least},
	{"maxLength", whole, characters, most},
	{"minItems", whole, items, least},
	{"maxItems", whole, items, most},
	{"minProperties", whole, members, least},
	{"maxProperties", whole, members, most},
}

func least(got, limit *big.Rat) bool { return got.Cmp(limit) >= 0 }
func most(got, limit *big.Rat) bool  { return got.Cmp(limit) <= 0 }

func number(v any) *big.Rat {
	text, ok := v.(json.Number)
	if !ok {
		return nil
	}
	r, _ := new(big.Rat).SetString(string(text))
	return r
}

func characters(v any) *big.Rat {
	if s, ok := v.(string); ok {
		return count(utf8.RuneCountInString(s))
	}
	return nil
}

func items(v any) *big.Rat {
	if list, ok := v.([]any); ok {
		return count(len(list))
	}
	return nil
}

func members(v any) *big.Rat {
	if m, ok := v.(map[string]any); ok {
		return count(len(m))
	}
	return nil
}

func count(n int) *big.Rat { return new(big.Rat).SetInt64(int64(n)) }

// size is the number of values in v, and more for long strings.
func size(v any) int {
	n := 1
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			n += size(item)
		}
	case map[string]any:
		for name, item := range v {
			n += size(item) + len(name)/64
		}
	case string:
		n += len(v) / 64
	}
	return n
}

// canonical is the same text for equal values: 1 and 1.0 are equal.
func canonical(v any) string { return string(appendCanonical(nil, v)) }

func appendCanonical(b []byte, v any) []byte {
	switch v := v.(type) {
	case json.Number:
		return append(b, number(v).RatString()...)
	case string:
		return strconv.AppendQuote(b, v)
	case []any:
		b = append(b, '[')
		for _, item := range v {
			b = append(appendCanonical(b, item), ',')
		}
		return append(b, ']')
	case map[string]any:
		b = append(b, '{')
		for _, name := range slices.Sorted(maps.Keys(v)) {
			b = append(strconv.AppendQuote(b, name), ':')
			b = append(appendCanonical(b, v[name]), ',')
		}
		return append(b, '}')
	default:
		return fmt.Append(b, v)
	}
}

// show is a value for an error: a string in single quotes, else as JSON.
func show(v any) string {
	if s, ok := v.(string); ok {
		s = strconv.Quote(s)
		return "'" + strings.ReplaceAll(strings.ReplaceAll(s[1:len(s)-1], `\"`, `"`), "'", `\'`) + "'"
	}
	b, err := json.Marshal(v)
	if err != nil {
		return "a value"
	}
	return string(b)
}

func showAll(names []string) string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = show(name)
	}
	return strings.Join(out, ", ")
}
