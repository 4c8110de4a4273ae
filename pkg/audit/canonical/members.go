package canonical

import (
	"bytes"
	"iter"
)

// Members yields the top-level members of a canonical object in their order: the name without its quotes but still escaped, and the text of the value. Both are parts
// of object. The object must have passed Check; for any other text the members are arbitrary, though it neither panics nor loops for ever.
func Members(object []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		if len(object) == 0 || object[0] != '{' {
			return
		}
		for i := 1; i < len(object) && object[i] == '"'; i++ {
			colon := afterString(object, i)
			if colon >= len(object) {
				return
			}
			end := afterValue(object, colon+1)
			if end > len(object) || !yield(object[i+1:colon-1], object[colon+1:end]) {
				return
			}
			i = end
		}
	}
}

// Unquote is the text of a canonical string value, for example one of Members; ok is false when value is not a string.
func Unquote(value []byte) (s string, ok bool) {
	if len(value) < 2 || value[0] != '"' {
		return "", false
	}
	return Unescape(value[1 : len(value)-1]), true
}

// Unescape is the text of a name as Members yields it.
func Unescape(name []byte) string {
	if bytes.IndexByte(name, '\\') < 0 {
		return string(name)
	}
	out := make([]byte, 0, len(name))
	for len(name) > 0 {
		c, n := unescape(name)
		out, name = append(out, c), name[n:]
	}
	return string(out)
}

// Integer is the value of a canonical number; ok is false when value is not one.
func Integer(value []byte) (n int64, ok bool) {
	s := scanner{text: value}
	if s.number(0) != len(value) {
		return 0, false
	}
	negative := value[0] == '-'
	if negative {
		value = value[1:]
	}
	for _, c := range value {
		n = n*10 + int64(c-'0')
	}
	if negative {
		n = -n
	}
	return n, true
}

// afterString is the index after the string that begins at i of checked text, beyond its end if the string has none.
func afterString(t []byte, i int) int {
	for i++; ; i++ {
		if i = plain(t, i); i >= len(t) {
			return len(t) + 1
		}
		switch t[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
}

// afterValue is the index after the value that begins at i of checked text, beyond its end if the value has none.
func afterValue(t []byte, i int) int {
	depth := 0
	for i < len(t) {
		switch t[i] {
		case '"':
			if i = afterString(t, i); depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',':
			if depth == 0 {
				return i
			}
		}
		i++
	}
	if depth > 0 {
		return len(t) + 1
	}
	return len(t)
}

// nesting is how many arrays and objects lie one in another in checked text.
func nesting(t []byte) (deepest int) {
	depth := 0
	for i := 0; i < len(t); i++ {
		switch t[i] {
		case '"':
			i = afterString(t, i) - 1
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		}
	}
	return deepest
}
