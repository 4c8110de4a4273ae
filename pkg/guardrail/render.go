package guardrail

import (
	"strings"
	"unicode/utf8"
)

// Render is a text with its spans masked. The spans are in order and disjoint.
func Render(text string, spans []Span) string {
	var b strings.Builder
	at := 0
	for _, s := range spans {
		b.WriteString(text[at:s.Start])
		b.WriteString(placeholder(s.Kind))
		at = s.End
	}
	b.WriteString(text[at:])
	return b.String()
}

// placeholder stands in the place of what was masked.
func placeholder(kind string) string { return "[" + kind + "]" }

// Cut is where a part of a text ends whose last characters, as many as keep, are looked at again with what follows. A span that lies across goes with
// them, unless it is longer than they are: then it is over.
func Cut(part string, keep int, spans []Span) (end int) {
	end = len(part)
	for range keep {
		_, size := utf8.DecodeLastRuneInString(part[:end])
		end -= size
	}
	for _, s := range spans {
		if s.Start < end && end < s.End {
			if utf8.RuneCountInString(part[s.Start:s.End]) > keep {
				return s.End
			}
			return s.Start
		}
	}
	return end
}

// Join puts spans of texts together with those that were found in the same texts after the first were masked: all are of the texts as they were.
func Join(first, later []Span) []Span {
	var all []Span
	for len(first)+len(later) > 0 {
		text := -1
		for _, spans := range [][]Span{first, later} {
			if len(spans) > 0 && (text < 0 || spans[0].Text < text) {
				text = spans[0].Text
			}
		}
		var a, b []Span
		a, first = of(text, first)
		b, later = of(text, later)
		all = append(all, joinText(a, b)...)
	}
	return all
}

// of are the spans of a text, which are at the beginning, and the rest.
func of(text int, spans []Span) (these, rest []Span) {
	n := 0
	for n < len(spans) && spans[n].Text == text {
		n++
	}
	return spans[:n], spans[n:]
}

// joinText is Join for one text. A later span that overlaps what stands in the place of a first one takes all that it hides.
func joinText(first, later []Span) (all []Span) {
	shift := 0 // from a place in the masked text to the same one in the text as it was
	pass := func() (s Span) {
		s, first = first[0], first[1:]
		shift += s.End - s.Start - len(placeholder(s.Kind))
		return s
	}
	begins := func() int { return first[0].Start - shift } // in the masked text
	for _, l := range later {
		for len(first) > 0 && begins()+len(placeholder(first[0].Kind)) <= l.Start {
			all = append(all, pass())
		}
		joined := Span{Kind: l.Kind, Text: l.Text, Start: l.Start + shift, End: l.End + shift}
		for len(first) > 0 && begins() < l.End {
			hidden := pass()
			joined.Start, joined.End = min(joined.Start, hidden.Start), max(l.End+shift, hidden.End)
		}
		if len(all) > 0 {
			joined.Start = max(joined.Start, all[len(all)-1].End)
		}
		all = append(all, joined)
	}
	return append(all, first...)
}
