package canonical

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// Append appends the canonical text of v to dst. v is nil, a bool, string, int, int64, a float64 or json.Number that holds an integer, or []any, []string,
// map[string]any and Raw made of these; a nil slice is [], a nil map {}. Everything else is an *Error, and dst comes back as it was.
func Append(dst []byte, v any) ([]byte, error) {
	out, err := appendValue(dst, v, 0)
	if err != nil {
		return dst, err
	}
	return out, nil
}

// AppendString appends the canonical text of s, quotes included. Invalid UTF-8 (an encoded surrogate is that too) is an *Error.
func AppendString(dst []byte, s string) ([]byte, error) {
	out, at := appendString(dst, s)
	if at >= 0 {
		return dst, refuse(wrongUTF8)
	}
	return out, nil
}

// AppendInt appends the canonical text of n. Beyond ±MaxInteger it is an *Error.
func AppendInt(dst []byte, n int64) ([]byte, error) {
	if n > MaxInteger || n < -MaxInteger {
		return dst, refuse(wrongMagnitude)
	}
	return strconv.AppendInt(dst, n, 10), nil
}

func refuse(what string) *Error { return &Error{What: what, Offset: -1} }

func appendValue(dst []byte, v any, depth int) ([]byte, error) {
	switch v := v.(type) {
	case string:
		return AppendString(dst, v)
	case map[string]any:
		return appendObject(dst, v, depth)
	case nil:
		return append(dst, "null"...), nil
	case bool:
		return strconv.AppendBool(dst, v), nil
	case int:
		return AppendInt(dst, int64(v))
	case int64:
		return AppendInt(dst, v)
	case float64:
		return appendFloat(dst, v)
	case json.Number:
		return appendNumber(dst, v)
	case Raw:
		return appendRaw(dst, v, depth)
	case []any:
		return appendArray(dst, v, depth, appendValue)
	case []string:
		return appendArray(dst, v, depth, func(dst []byte, s string, _ int) ([]byte, error) { return AppendString(dst, s) })
	}
	return dst, refuse(fmt.Sprintf("%s%T", wrongType, v))
}

// appendString is AppendString without an error's cost: at is the offset in s of the first invalid byte, -1 if there is none.
func appendString(dst []byte, s string) (out []byte, at int) {
	dst = append(dst, '"')
	from := 0
	for i := 0; ; {
		if i = plainString(s, i); i == len(s) {
			return append(append(dst, s[from:]...), '"'), -1
		}
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				return dst, i
			}
			i += size
			continue
		}
		dst = appendEscape(append(dst, s[from:i]...), c)
		i++
		from = i
	}
}

// appendEscape appends the escape of c, which has one.
func appendEscape(dst []byte, c byte) []byte {
	if e := escapes[c]; e != 'u' {
		return append(dst, '\\', e)
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

func appendFloat(dst []byte, f float64) ([]byte, error) {
	switch {
	case math.Trunc(f) != f || math.IsInf(f, 0): // NaN is not equal to itself
		return dst, refuse(wrongNotInteger)
	case f == 0 && math.Signbit(f):
		return dst, refuse(wrongMinusZero)
	case math.Abs(f) > MaxInteger:
		return dst, refuse(wrongMagnitude)
	}
	return strconv.AppendInt(dst, int64(f), 10), nil
}

func appendNumber(dst []byte, n json.Number) ([]byte, error) {
	s := scanner{text: []byte(n)}
	switch end := s.number(0); {
	case end < 0:
		return dst, refuse(s.what)
	case end != len(n):
		return dst, refuse(wrongNumber)
	}
	return append(dst, n...), nil
}

// appendRaw copies r, and looks into it only when it could nest too deep where it is going.
func appendRaw(dst []byte, r Raw, depth int) ([]byte, error) {
	if len(r) == 0 {
		return dst, refuse(wrongRaw)
	}
	if depth > 0 && bytes.Count(r, []byte{'['})+bytes.Count(r, []byte{'{'}) > MaxDepth-depth && nesting(r) > MaxDepth-depth {
		return dst, refuse(wrongDepth)
	}
	return append(dst, r...), nil
}

func appendArray[T any](dst []byte, list []T, depth int, element func([]byte, T, int) ([]byte, error)) ([]byte, error) {
	if depth == MaxDepth {
		return dst, refuse(wrongDepth)
	}
	dst = append(dst, '[')
	for i, v := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = element(dst, v, depth+1); err != nil {
			return dst, under(err, "["+strconv.Itoa(i)+"]")
		}
	}
	return append(dst, ']'), nil
}

func appendObject(dst []byte, object map[string]any, depth int) ([]byte, error) {
	if depth == MaxDepth {
		return dst, refuse(wrongDepth)
	}
	var few [24]member // on the stack: an object of usual size costs no allocation
	members := few[:0]
	for name, value := range object {
		members = append(members, member{name, value})
	}
	order(members)
	dst = append(dst, '{')
	for i := range members {
		if i > 0 {
			dst = append(dst, ',')
		}
		m := &members[i]
		var at int
		if dst, at = appendString(dst, m.name); at >= 0 {
			return dst, under(refuse(wrongUTF8), strconv.Quote(m.name))
		}
		dst = append(dst, ':')
		var err error
		if dst, err = appendValue(dst, m.value, depth+1); err != nil {
			return dst, under(err, m.name)
		}
	}
	return append(dst, '}'), nil
}

// under says that err happened at or below the named place.
func under(err error, name string) error {
	e := err.(*Error) //nolint:errorlint // made in this file, never wrapped
	if len(name) > 64 {
		name = name[:64] + "…"
	}
	if e.Path != "" && e.Path[0] != '[' {
		name += "."
	}
	return &Error{What: e.What, Offset: -1, Path: name + e.Path}
}
