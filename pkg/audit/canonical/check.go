package canonical

import "unicode/utf8"

// Check is nil exactly when text is, byte for byte, the canonical form of a JSON value; else it is an *Error that names the first byte that is not.
// It allocates nothing when text is right.
func Check(text []byte) error {
	s := scanner{text: text}
	end := s.value(0, 0)
	if end == len(text) {
		return nil
	}
	if end >= 0 {
		s.fail(end, s.unexpected(end, wrongTail))
	}
	return &Error{What: s.what, Offset: s.at}
}

// scanner goes through canonical text. Its methods take the index at which something begins and return the index after it, or -1 after fail.
type scanner struct {
	text []byte
	what string
	at   int
}

func (s *scanner) fail(at int, what string) int {
	s.at, s.what = at, what
	return -1
}

// unexpected names what is wrong with the byte at i, which is otherwise called what.
func (s *scanner) unexpected(i int, what string) string {
	if i >= len(s.text) {
		return wrongEnd
	}
	switch s.text[i] {
	case ' ', '\t', '\n', '\r':
		return wrongSpace
	}
	return what
}

func (s *scanner) value(i, depth int) int {
	if i >= len(s.text) {
		return s.fail(i, wrongEnd)
	}
	switch c := s.text[i]; {
	case c == '"':
		return s.string(i)
	case c == '{':
		return s.object(i, depth)
	case c == '[':
		return s.array(i, depth)
	case c == '-' || c >= '0' && c <= '9':
		return s.number(i)
	case c == 't':
		return s.literal(i, "true")
	case c == 'f':
		return s.literal(i, "false")
	case c == 'n':
		return s.literal(i, "null")
	}
	return s.fail(i, s.unexpected(i, wrongByte))
}

func (s *scanner) literal(i int, word string) int {
	if end := i + len(word); end <= len(s.text) && string(s.text[i:end]) == word {
		return end
	}
	return s.fail(i, wrongByte)
}

// object also holds the names to their order; as each is compared with the one before, none can be there twice.
func (s *scanner) object(i, depth int) int {
	if depth == MaxDepth {
		return s.fail(i, wrongDepth)
	}
	i++
	if i < len(s.text) && s.text[i] == '}' {
		return i + 1
	}
	var last []byte
	for first := true; ; first = false {
		if i >= len(s.text) || s.text[i] != '"' {
			return s.fail(i, s.unexpected(i, wrongByte))
		}
		end := s.string(i)
		if end < 0 {
			return -1
		}
		name := s.text[i+1 : end-1]
		if !first {
			if c := compare(last, name); c >= 0 {
				if c == 0 {
					return s.fail(i, wrongTwice)
				}
				return s.fail(i, wrongOrder)
			}
		}
		last = name
		if end >= len(s.text) || s.text[end] != ':' {
			return s.fail(end, s.unexpected(end, wrongByte))
		}
		if i = s.value(end+1, depth+1); i < 0 {
			return -1
		}
		if i < len(s.text) && s.text[i] == ',' {
			i++
			continue
		}
		if i < len(s.text) && s.text[i] == '}' {
			return i + 1
		}
		return s.fail(i, s.unexpected(i, wrongByte))
	}
}

func (s *scanner) array(i, depth int) int {
	if depth == MaxDepth {
		return s.fail(i, wrongDepth)
	}
	i++
	if i < len(s.text) && s.text[i] == ']' {
		return i + 1
	}
	for {
		if i = s.value(i, depth+1); i < 0 {
			return -1
		}
		if i < len(s.text) && s.text[i] == ',' {
			i++
			continue
		}
		if i < len(s.text) && s.text[i] == ']' {
			return i + 1
		}
		return s.fail(i, s.unexpected(i, wrongByte))
	}
}

func (s *scanner) string(i int) int {
	t := s.text
	for i++; ; {
		if i = plain(t, i); i >= len(t) {
			return s.fail(i, wrongEnd)
		}
		switch c := t[i]; {
		case c == '"':
			return i + 1
		case c == '\\':
			n, what := canonicalEscape(t[i:])
			if what == wrongEnd {
				i = len(t)
			}
			if n == 0 {
				return s.fail(i, what)
			}
			i += n
		case c < ' ':
			return s.fail(i, wrongControl)
		default:
			r, size := utf8.DecodeRune(t[i:])
			if r == utf8.RuneError && size == 1 {
				return s.fail(i, wrongUTF8)
			}
			i += size
		}
	}
}

// canonicalEscape is the length of the escape at the start of t, or 0 and what is wrong with it.
func canonicalEscape(t []byte) (n int, what string) {
	if len(t) < 2 {
		return 0, wrongEnd
	}
	if c := unescaped[t[1]]; c != 0 {
		if c == '/' {
			return 0, wrongForm
		}
		return 2, ""
	}
	if t[1] != 'u' {
		return 0, wrongEscape
	}
	if len(t) < 6 {
		return 0, wrongEnd
	}
	for _, c := range t[2:6] {
		if unhex[c] > 15 {
			return 0, wrongEscape
		}
	}
	if t[2] != '0' || t[3] != '0' || t[4] > '1' || t[5] >= 'A' && t[5] <= 'F' || escapes[(t[4]-'0')<<4|unhex[t[5]]] != 'u' {
		return 0, wrongForm
	}
	return 6, ""
}

// number takes exactly the integers that are allowed.
func (s *scanner) number(i int) int {
	t, start := s.text, i
	if i < len(t) && t[i] == '-' {
		i++
	}
	digits := i
	var n uint64
	for ; i < len(t) && t[i] >= '0' && t[i] <= '9'; i++ {
		if i-digits < 17 { // a seventeenth digit is too many whatever follows
			n = n*10 + uint64(t[i]-'0')
		}
	}
	switch {
	case i == digits || t[digits] == '0' && i > digits+1:
		return s.fail(start, wrongNumber)
	case i < len(t) && (t[i] == '.' || t[i] == 'e' || t[i] == 'E'):
		return s.fail(start, wrongFraction)
	case n > MaxInteger:
		return s.fail(start, wrongMagnitude)
	case n == 0 && digits > start:
		return s.fail(start, wrongMinusZero)
	}
	return i
}
