package channel

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// span is a part of a text, from a byte to before another.
type span struct{ from, to int }

// mentions are the places where a text says @name, as GitHub takes it: not within another word, nor in code, quotes and comments. Case means nothing.
func mentions(s, name string) (found []span) {
	if name == "" {
		return nil
	}
	said, _ := prose(s)
	for i := 0; i < len(said); i++ {
		if said[i] != '@' {
			continue
		}
		to := i + 1 + len(name)
		if to > len(said) || !strings.EqualFold(string(said[i+1:to]), name) || before(said[:i]) || behind(said[to:]) {
			continue
		}
		if app := "[bot]"; to+len(app) <= len(said) && string(said[to:to+len(app)]) == app {
			to += len(app)
		}
		found = append(found, span{i, to})
		i = to - 1
	}
	return found
}

// before reports whether what ends here makes an @ no mention: a word, as in an address of mail, or a slash, as in a link.
func before(s []byte) bool {
	r, _ := utf8.DecodeLastRune(s)
	return len(s) > 0 && (inWord(r) || r == '/' || r == '@' || r == '\\' || r == '`')
}

// behind reports whether a name goes on here.
func behind(s []byte) bool {
	r, n := utf8.DecodeRune(s)
	if len(s) > 0 && (inWord(r) || r == '-' || r == '/') {
		return true
	}
	next, _ := utf8.DecodeRune(s[n:])
	return r == '.' && len(s) > n && inWord(next)
}

func inWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }

// without is s with parts of it left out, and what they leave behind: a comma after the first word, two spaces.
func without(s string, parts []span) string {
	var b strings.Builder
	rest, begun := 0, false
	for _, p := range parts {
		b.WriteString(s[rest:p.from])
		begun = begun || strings.TrimSpace(s[rest:p.from]) != ""
		if rest = p.to; !begun {
			rest = len(s) - len(strings.TrimLeft(s[rest:], ":,"))
		}
		if kept := b.String(); kept == "" || strings.HasSuffix(kept, " ") || strings.HasSuffix(kept, "\n") {
			rest = len(s) - len(strings.TrimLeft(s[rest:], " "))
		}
	}
	b.WriteString(s[rest:])
	return strings.TrimSpace(b.String())
}
