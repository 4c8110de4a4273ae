package text

import "unicode/utf8"

// Cut is the longest beginning of s, in whole characters, that has at most max bytes as a string in JSON (as encoding/json writes it, without the quotes), and
// whether there is more of s.
func Cut(s string, max int) (string, bool) {
	if len(s)*6 <= max { // nothing in JSON is longer than six times what it stands for
		return s, false
	}
	size := 0
	for i, r := range s {
		n := utf8.RuneLen(r)
		switch {
		case r == '"' || r == '\\' || r == '\n' || r == '\r' || r == '\t' || r == '\b' || r == '\f':
			n = 2
		case r < 0x20 || r == '<' || r == '>' || r == '&' || r == '\u2028' || r == '\u2029' || r == utf8.RuneError:
			n = 6
		}
		if size += n; size > max {
			return s[:i], true
		}
	}
	return s, false
}
