package asl

import "encoding/json"

// equal says whether two values are the same: numbers by what they are, not by how they are written.
func (e *evaluation) equal(a, b any) bool {
	if !e.spend(1) {
		return false
	}
	switch x := a.(type) {
	case json.Number:
		e.spend(len(x) / 16)
		y, is := b.(json.Number)
		return is && compare(x, y) == 0
	case []any:
		y, is := b.([]any)
		if !is || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !e.equal(x[i], y[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		y, is := b.(map[string]any)
		if !is || len(x) != len(y) {
			return false
		}
		for name, value := range x {
			other, has := y[name]
			if !has || !e.equal(value, other) {
				return false
			}
		}
		return true
	}
	switch b.(type) {
	case []any, map[string]any: // which cannot be compared
		return false
	}
	return a == b
}

// key is a text that two values share if they are equal, and only then.
func (e *evaluation) key(b []byte, value any) []byte {
	if !e.spend(1) {
		return b
	}
	switch v := value.(type) {
	case json.Number:
		e.spend(3 + len(v)/16)
		return append(append(b, '#'), exactly(v).key()...)
	case []any:
		b = append(b, '[')
		for _, item := range v {
			b = append(e.key(b, item), ',')
		}
		return append(b, ']')
	case map[string]any:
		b = append(b, '{')
		for _, name := range names(v) {
			b = append(e.key(appendString(b, name), v[name]), ',')
		}
		return append(b, '}')
	}
	e.spend(size(value) / 16)
	return appendValue(b, value)
}

func size(value any) int {
	if s, is := value.(string); is {
		return len(s)
	}
	return 0
}
