package sandbox

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// clip is the beginning of s, of at most max bytes, without half a character.
func clip(s string, max int) string {
	if len(s) <= max {
		return s
	}
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return s[:max]
}

// clean is s as it can be stored: UTF-8 without NUL.
func clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// cleanJSON is JSON text in which no string holds a NUL or a lone surrogate, neither of which a database's JSON can hold. JSON.stringify escapes both, and
// never a surrogate that has its other half.
func cleanJSON(text []byte) []byte {
	text = bytes.ToValidUTF8(text, []byte("\uFFFD"))
	for i := 0; i+1 < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		if i++; text[i] != 'u' || i+4 >= len(text) {
			continue // an escaped backslash does not start an escape
		}
		if code := string(bytes.ToLower(text[i+1 : i+5])); code == "0000" || code >= "d800" && code <= "dfff" {
			copy(text[i+1:], "fffd")
		}
	}
	return text
}
