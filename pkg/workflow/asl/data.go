package asl

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"unicode/utf8"
)

// MaxDepth is how deep Data may be nested: what follows them into the depth needs no other bound.
const MaxDepth = 500

var errDepth = fmt.Errorf("asl: data are nested deeper than %d", MaxDepth)

// Decode reads Data. Text that is not one JSON value, or nested deeper than MaxDepth, is an error. Of a name that an object has twice the last counts.
func Decode(text json.RawMessage) (any, error) {
	if nested(text) > MaxDepth {
		return nil, errDepth
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return nil, fmt.Errorf("asl: data: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("asl: data: more than one value")
	}
	return value, nil
}

// nested is how deep a JSON text is nested. Of other texts it is a number.
func nested(text []byte) (deepest int) {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted:
			if c == '\\' {
				i++
			} else if c == '"' {
				quoted = false
			}
		case c == '"':
			quoted = true
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}

// Encode writes Data without white space, names in order, and no character escaped that need not be. A Context is an object, too; it panics at what
// are no Data.
func Encode(value any) json.RawMessage { return appendValue(make([]byte, 0, 128), value) }

func appendValue(b []byte, value any) []byte {
	switch v := value.(type) {
	case nil:
		return append(b, "null"...)
	case bool:
		if v {
			return append(b, "true"...)
		}
		return append(b, "false"...)
	case json.Number:
		return append(b, v...)
	case string:
		return appendString(b, v)
	case []any:
		b = append(b, '[')
		for i, item := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendValue(b, item)
		}
		return append(b, ']')
	case map[string]any:
		b = append(b, '{')
		for i, name := range names(v) {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendString(b, name), ':')
			b = appendValue(b, v[name])
		}
		return append(b, '}')
	case Context:
		return appendValue(b, map[string]any(v))
	}
	panic(fmt.Sprintf("asl: %T is no Data", value))
}

// names are an object's, in order.
func names(object map[string]any) []string { return slices.Sorted(maps.Keys(object)) }

const hexDigits = "0123456789abcdef"

func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[from:i]...)
		if short := short(c); short != 0 {
			b = append(b, '\\', short)
		} else {
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		from = i + 1
	}
	return append(append(b, s[from:]...), '"')
}

// short is what follows the backslash of a byte that has an escape of two characters.
func short(c byte) byte {
	switch c {
	case '"', '\\':
		return c
	case '\n':
		return 'n'
	case '\r':
		return 'r'
	case '\t':
		return 't'
	case '\b':
		return 'b'
	case '\f':
		return 'f'
	}
	return 0
}

// room says what of a number of bytes is left once value is encoded; less than 0 is too little, or that it is nested too deep. It looks no further than that.
// Data share their parts, so that what is small in memory may be of any size when it is encoded.
func room(value any, left, depth int) int {
	if depth < 0 {
		return -1
	}
	switch v := value.(type) {
	case nil:
		return left - 4
	case bool:
		if v {
			return left - 4
		}
		return left - 5
	case json.Number:
		return left - len(v)
	case string:
		return left - quotedSize(v)
	case []any:
		left -= 1 + max(1, len(v)) // brackets and commas
		for i := 0; i < len(v) && left >= 0; i++ {
			left = room(v[i], left, depth-1)
		}
	case map[string]any:
		left -= 1 + max(1, len(v)) + len(v)
		for name, item := range v {
			if left = room(item, left-quotedSize(name), depth-1); left < 0 {
				break
			}
		}
	case Context:
		return room(map[string]any(v), left, depth)
	}
	return left
}

// quotedSize is how long appendString's text is.
func quotedSize(s string) int {
	n := len(s) + 2
	for i := range len(s) {
		switch c := s[i]; {
		case c >= ' ' && c != '"' && c != '\\':
		case short(c) != 0:
			n++
		default:
			n += 5
		}
	}
	return n
}

// clip keeps a text that goes into an error's cause short.
func clip(text string) string {
	const limit = 200
	if len(text) <= limit {
		return text
	}
	end := limit
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}
