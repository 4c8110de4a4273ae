package guardrail

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// busy are texts, by what they repeat, that are made to keep machines busy.
var busy = []string{"a", "a.", "a@", "a@b.", "1", "1 ", "0 1", "+1", ":", "1.", "eyJ", "eyJa.", "token=", "token=a1", "password: ", "-----BEGIN PRIVATE KEY-----\n", "A",
	"salaries of the ", "\u200b", "\u200ba", "日", "AKIA", "DE89 3704", "a@1.+token=eyJ "}

// ambiguous are patterns that can be read in very many ways.
var ambiguous = []Rule{own("classes", `[a-z]{1,100}[0-9]`), own("choices", `(?:a|aa|aaa){1,20}b`), own("optional", `a?a?a?a?a?a?a?a?a?a?aaaaaaaaaab`),
	own("nested", `(?:(?:a{1,5}){1,5}){1,5}c`)}

// readAll reads a text of that size that repeats a unit, and would not end within a test's time if anything took more than linear time.
func readAll(t *testing.T, unit string, size int, rules ...Rule) {
	g := masking(t, slices.Clone(rules)...)
	text := strings.Repeat(unit, size/len(unit))
	s := newScanner(g.compiled, Output)
	n := 0
	for rest := text; len(rest) > 0; {
		piece := rest[:min(len(rest), 1<<12)]
		rest = rest[len(piece):]
		s.write(piece)
		n += len(s.take())
	}
	s.finish()
	require.Positive(t, n+len(s.take()), unit)
}

func TestNoTextTakesLong(t *testing.T) {
	for _, unit := range busy {
		readAll(t, unit, 1<<12, slices.Concat(ambiguous, everything)...)
	}
	readAll(t, "1 ", 1<<20, everything[1:]...)
}

const prose = "The quarterly report says that the team in Berlin shipped 14 features, and that costs fell by 3.5 % since 2024-01-02. "

func BenchmarkCheck(b *testing.B) {
	for name, said := range map[string][]Rule{"secrets": everything[:1], "personal": everything[1:2], "everything": everything} {
		g := masking(b, said...)
		text := strings.Repeat(prose, 1<<16/len(prose))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				_, _ = Checker{}.Check(b.Context(), g, Output, []string{text})
			}
		})
	}
}

func BenchmarkStream(b *testing.B) {
	g := masking(b, everything...)
	for b.Loop() {
		s, _ := Checker{}.Stream(g, Output)
		for word := range strings.SplitAfterSeq(prose, " ") {
			_, _ = s.Write(b.Context(), word)
		}
		_, _ = s.Close(b.Context())
	}
}
