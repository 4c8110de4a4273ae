package tape

import (
	"errors"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// plain marks the bytes that a string may hold as they are; all others need a look.
var plain = func() (t [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

// text reads a string, a key or a value.
func (p *parser) text(at int) (int, error) {
	node := p.add(String, at)
	src := p.src
	foreign := false // holds bytes outside ASCII
	for i := at + 1; i < len(src); i++ {
		c := src[i]
		if plain[c] {
			continue
		}
		switch {
		case c == '"':
			if foreign && !utf8.Valid(src[at:i]) {
				return 0, fmt.Errorf("invalid UTF-8 in the string at byte %d of JSON text", at)
			}
			return p.close(node, i+1), nil
		case c == '\\':
			p.nodes[node].Escaped = true
			n, err := escape(src[i:])
			if err != nil {
				return 0, fmt.Errorf("%w at byte %d of JSON text", err, i)
			}
			i += n - 1
		case c < ' ':
			return 0, fmt.Errorf("control character in the string at byte %d of JSON text", at)
		default:
			foreign = true
		}
	}
	return 0, p.unexpected(len(src))
}

// escape measures the escape sequence (or surrogate pair) at the start of s.
func escape(s []byte) (int, error) {
	if len(s) < 2 {
		return 0, errors.New("unfinished escape")
	}
	switch s[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2, nil
	case 'u':
	default:
		return 0, errors.New("unknown escape")
	}
	r, ok := hex4(s)
	if !ok {
		return 0, errors.New("malformed \\u escape")
	}
	if !utf16.IsSurrogate(r) {
		return 6, nil
	}
	low, ok := hex4(s[6:])
	if !ok || utf16.DecodeRune(r, low) == utf8.RuneError {
		return 0, errors.New("lone surrogate")
	}
	return 12, nil
}

// hex4 reads \uXXXX at the start of s.
func hex4(s []byte) (rune, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range s[2:6] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

// unescape appends the decoded form of a checked string's inner bytes.
func unescape(dst, s []byte) []byte {
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			dst = append(dst, s[i])
			continue
		}
		i++
		switch s[i] {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r, _ := hex4(s[i-1:])
			i += 4
			if utf16.IsSurrogate(r) {
				low, _ := hex4(s[i+1:])
				r = utf16.DecodeRune(r, low)
				i += 6
			}
			dst = utf8.AppendRune(dst, r)
		default:
			dst = append(dst, s[i])
		}
	}
	return dst
}

func (p *parser) word(at int, word string, kind Kind) (int, error) {
	if len(p.src)-at < len(word) || string(p.src[at:at+len(word)]) != word {
		return 0, p.unexpected(at)
	}
	return p.close(p.add(kind, at), at+len(word)), nil
}

func (p *parser) number(start int) (int, error) {
	src, at := p.src, start
	if src[at] == '-' {
		at++
	}
	whole := digits(src, at)
	if whole == at || (src[at] == '0' && whole > at+1) {
		return 0, p.unexpected(at)
	}
	at = whole
	if at < len(src) && src[at] == '.' {
		frac := digits(src, at+1)
		if frac == at+1 {
			return 0, p.unexpected(frac)
		}
		at = frac
	}
	if at < len(src) && (src[at] == 'e' || src[at] == 'E') {
		at++
		if at < len(src) && (src[at] == '+' || src[at] == '-') {
			at++
		}
		exp := digits(src, at)
		if exp == at {
			return 0, p.unexpected(at)
		}
		at = exp
	}
	return p.close(p.add(Number, start), at), nil
}

func digits(src []byte, at int) int {
	for at < len(src) && src[at] >= '0' && src[at] <= '9' {
		at++
	}
	return at
}
