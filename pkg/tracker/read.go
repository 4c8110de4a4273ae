package tracker

import (
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agentplatform/agentplatform/pkg/fault"
)

const (
	maxLine   = 300  // bytes of a title, a name, a status
	maxID     = 200  // of an id
	maxDepth  = 100  // of a body, far beyond what trackers send
	maxEvents = 1000 // of one delivery
	maxURL    = 2000
)

// read takes a body that strangers may have sent.
func read(body []byte, to any) error {
	if !utf8.Valid(body) || json.Unmarshal(body, to) != nil || depth(body) > maxDepth {
		return fault.Invalid("the body is not what the provider sends")
	}
	return nil
}

func depth(body []byte) (deepest int) {
	now, inString := 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			now++
			deepest = max(deepest, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return deepest
}

// line is text of people on one line, of a length that fits a title: without what is not to be seen.
func line(s string) string {
	s = strings.Join(strings.FieldsFunc(s, func(c rune) bool { return c <= ' ' || c == 0x7f || c == '\u2028' || c == '\u2029' || c == '\ufeff' }), " ")
	if len(s) <= maxLine {
		return s
	}
	cut := maxLine - len("…")
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// id is an id as providers have them: visible ASCII. What is none is empty, like one that is not there.
func id(s string) string {
	if len(s) > maxID || strings.ContainsFunc(s, notVisible) {
		return ""
	}
	return s
}

// word is what a provider calls something: letters and a few signs.
func word(s string) string {
	if len(s) > 100 || strings.ContainsFunc(s, notVisible) {
		return ""
	}
	return s
}

// digits is an id that is a number, as some providers have them.
func digits(s string) string {
	if len(s) > maxID || strings.ContainsFunc(s, func(c rune) bool { return c < '0' || c > '9' }) {
		return ""
	}
	return s
}

// millis is a time of the provider's in milliseconds since 1970; zero: it cannot be one.
func millis(ms int64) time.Time {
	if at := time.UnixMilli(ms).UTC(); at.Year() > 2000 && at.Year() < 9999 {
		return at
	}
	return time.Time{}
}

func notVisible(c rune) bool { return c <= ' ' || c > '~' }

// link is a web address that people may follow; any other is empty.
func link(s string) string {
	if len(s) > maxURL || !strings.HasPrefix(s, "https://") || strings.ContainsFunc(s, notVisible) {
		return ""
	}
	return s
}

// moment is a time of the provider's; zero: it cannot be understood.
func moment(s string) time.Time {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999-0700"} {
		if at, err := time.Parse(layout, s); err == nil && at.Year() > 2000 && at.Year() < 9999 {
			return at.UTC()
		}
	}
	return time.Time{}
}

// day is a date; anything else is empty.
func day(s string) string {
	if len(s) >= len(time.DateOnly) {
		if _, err := time.Parse(time.DateOnly, s[:len(time.DateOnly)]); err == nil {
			return s[:len(time.DateOnly)]
		}
	}
	return ""
}

// people are those of ids that there are, each once.
func people(ids ...string) (all []string) {
	seen := map[string]bool{"": true}
	for _, id := range ids {
		if !seen[id] {
			seen[id] = true
			all = append(all, id)
		}
	}
	return all
}

// skew is how far ahead a provider's clock may be.
const skew = 5 * time.Minute

// recent reports whether a delivery was signed at most age ago.
func recent(at, now time.Time, age time.Duration) bool {
	return !at.IsZero() && at.After(now.Add(-age)) && at.Before(now.Add(skew))
}
