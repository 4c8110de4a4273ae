package canonical

import (
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// Transform appends to dst the canonical form of text, which is any JSON text (RFC 8259): white space goes, names are put in order, escapes are spelled the one way.
// What has no canonical form is an *Error with the byte offset in text, and dst comes back as it was. dst and text must not overlap.
func Transform(dst, text []byte) ([]byte, error) {
	var few [24]span // on the stack, unless there are more
	t := transformer{scanner: scanner{text: text}, out: dst, spans: few[:0]}
	i := t.value(t.space(0), 0)
	if i >= 0 {
		if i = t.space(i); i == len(text) {
			return t.out, nil
		}
		t.fail(i, wrongTail)
	}
	return dst, &Error{What: t.what, Offset: t.at}
}

// transformer reads text and appends to out. Its methods return indexes as scanner's do.
type transformer struct {
	scanner
	out   []byte
	spans []span // of the members of the objects that are being read, the innermost last
	spare []byte // to put members in order
}

// span is a member in out, and where its name stood in text.
type span struct{ from, colon, to, source int }

func (t *transformer) space(i int) int {
	for i < len(t.text) && (t.text[i] == ' ' || t.text[i] == '\n' || t.text[i] == '\r' || t.text[i] == '\t') {
		i++
	}
	return i
}

// byteAt is the byte at i, 0 at the end.
func (t *transformer) byteAt(i int) byte {
	if i < len(t.text) {
		return t.text[i]
	}
	return 0
}

// stray fails at a byte that cannot be here.
func (t *transformer) stray(i int) int {
	if i >= len(t.text) {
		return t.fail(i, wrongEnd)
	}
	return t.fail(i, wrongByte)
}

func (t *transformer) value(i, depth int) int {
	switch c := t.byteAt(i); {
	case c == '"':
		return t.string(i)
	case c == '{':
		return t.object(i, depth)
	case c == '[':
		return t.array(i, depth)
	case c == '-' || c >= '0' && c <= '9' || c == 't' || c == 'f' || c == 'n':
		end := t.scanner.value(i, depth) // these have no other spelling
		if end >= 0 {
			t.out = append(t.out, t.text[i:end]...)
		}
		return end
	}
	return t.stray(i)
}

func (t *transformer) array(i, depth int) int {
	if depth == MaxDepth {
		return t.fail(i, wrongDepth)
	}
	t.out = append(t.out, '[')
	if i = t.space(i + 1); t.byteAt(i) != ']' {
		for {
			if i = t.value(i, depth+1); i < 0 {
				return -1
			}
			if i = t.space(i); t.byteAt(i) != ',' {
				break
			}
			t.out = append(t.out, ',')
			i = t.space(i + 1)
		}
	}
	if t.byteAt(i) != ']' {
		return t.stray(i)
	}
	t.out = append(t.out, ']')
	return i + 1
}

func (t *transformer) object(i, depth int) int {
	if depth == MaxDepth {
		return t.fail(i, wrongDepth)
	}
	t.out = append(t.out, '{')
	first := len(t.spans)
	if i = t.space(i + 1); t.byteAt(i) != '}' {
		for {
			if i = t.member(i, depth); i < 0 {
				return -1
			}
			if i = t.space(i); t.byteAt(i) != ',' {
				break
			}
			t.out = append(t.out, ',')
			i = t.space(i + 1)
		}
	}
	if t.byteAt(i) != '}' {
		return t.stray(i)
	}
	if !t.order(t.spans[first:]) {
		return -1
	}
	t.spans = t.spans[:first]
	t.out = append(t.out, '}')
	return i + 1
}

func (t *transformer) member(i, depth int) int {
	if t.byteAt(i) != '"' {
		return t.stray(i)
	}
	s := span{from: len(t.out), source: i}
	if i = t.string(i); i < 0 {
		return -1
	}
	s.colon = len(t.out)
	if i = t.space(i); t.byteAt(i) != ':' {
		return t.stray(i)
	}
	t.out = append(t.out, ':')
	if i = t.value(t.space(i+1), depth+1); i < 0 {
		return -1
	}
	s.to = len(t.out)
	t.spans = append(t.spans, s)
	return i
}

// order puts members, which stand one after the other at the end of out, into the order of their names; false if a name is there twice.
func (t *transformer) order(members []span) bool {
	byName := func(a, b span) int { return compare(t.out[a.from+1:a.colon-1], t.out[b.from+1:b.colon-1]) }
	sorted := true
	for i := 1; i < len(members) && sorted; i++ {
		sorted = byName(members[i-1], members[i]) < 0
	}
	if sorted {
		return true
	}
	start := members[0].from
	slices.SortStableFunc(members, byName)
	t.spare = t.spare[:0]
	for i, m := range members {
		if i > 0 {
			if byName(members[i-1], m) == 0 {
				t.fail(m.source, wrongTwice)
				return false
			}
			t.spare = append(t.spare, ',')
		}
		t.spare = append(t.spare, t.out[m.from:m.to]...)
	}
	copy(t.out[start:], t.spare)
	return true
}

func (t *transformer) string(i int) int {
	text := t.text
	t.out = append(t.out, '"')
	i++
	for from := i; ; {
		if i = plain(text, i); i >= len(text) {
			return t.fail(i, wrongEnd)
		}
		switch c := text[i]; {
		case c == '"':
			t.out = append(append(t.out, text[from:i]...), '"')
			return i + 1
		case c == '\\':
			t.out = append(t.out, text[from:i]...)
			if i = t.escape(i); i < 0 {
				return -1
			}
			from = i
		case c < ' ':
			return t.fail(i, wrongControl)
		default:
			r, size := utf8.DecodeRune(text[i:])
			if r == utf8.RuneError && size == 1 {
				return t.fail(i, wrongUTF8)
			}
			i += size
		}
	}
}

// escape appends what the escape at i stands for, in its canonical spelling.
func (t *transformer) escape(i int) int {
	if i+1 >= len(t.text) {
		return t.fail(len(t.text), wrongEnd)
	}
	if c := unescaped[t.text[i+1]]; c != 0 {
		if escapes[c] == 0 {
			t.out = append(t.out, c)
		} else {
			t.out = appendEscape(t.out, c)
		}
		return i + 2
	}
	r, ok := t.unit(i)
	if !ok {
		return -1
	}
	end := i + 6
	if utf16.IsSurrogate(r) {
		if t.byteAt(end) != '\\' || t.byteAt(end+1) != 'u' {
			return t.fail(i, wrongSurrogate)
		}
		low, ok := t.unit(end)
		if !ok {
			return -1
		}
		if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
			return t.fail(i, wrongSurrogate)
		}
		end += 6
	}
	if r < utf8.RuneSelf && escapes[r] != 0 {
		t.out = appendEscape(t.out, byte(r))
	} else {
		t.out = utf8.AppendRune(t.out, r)
	}
	return end
}

// unit is the UTF-16 code unit that the \uXXXX at i names.
func (t *transformer) unit(i int) (r rune, ok bool) {
	if t.text[i+1] != 'u' {
		t.fail(i, wrongEscape)
		return 0, false
	}
	if i+6 > len(t.text) {
		t.fail(len(t.text), wrongEnd)
		return 0, false
	}
	for _, c := range t.text[i+2 : i+6] {
		if unhex[c] > 15 {
			t.fail(i, wrongEscape)
			return 0, false
		}
		r = r<<4 | rune(unhex[c])
	}
	return r, true
}
