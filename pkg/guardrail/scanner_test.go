package guardrail

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// masking is a guardrail that masks all that these name, at every stage.
func masking(t require.TestingT, said ...Rule) Guardrail {
	for i := range said {
		if said[i].Action == "" {
			said[i].Action = Mask
		}
		if said[i].Stages == nil {
			said[i].Stages = Stages
		}
	}
	s := Settings{Name: "Test", Kind: Rules, Rules: said}
	require.NoError(t, s.Complete())
	g := Guardrail{ID: "g"}.With(s)
	require.NoError(t, g.Compile())
	return g
}

func own(name, pattern string) Rule { return Rule{Pattern: &Pattern{name, pattern}} }

// inPieces is what a scanner gives out for a text in pieces, after each of them and at the end.
func inPieces(g Guardrail, pieces []string) (given []string, s *scanner) {
	s = newScanner(g.compiled, Output)
	shown := ""
	for _, p := range pieces {
		s.write(p)
		shown += s.take()
		given = append(given, shown)
	}
	s.finish()
	return append(given, shown+s.take()), s
}

func cut(t *rapid.T, text string) (pieces []string) {
	for len(text) > 0 {
		n := rapid.IntRange(1, min(len(text), 12)).Draw(t, "piece")
		pieces, text = append(pieces, text[:n]), text[n:]
	}
	return pieces
}

// wholly compiles an expression that must match all of a text, once.
func wholly(pattern string) *regexp.Regexp {
	compiled, known := expressions.Load(pattern)
	if !known {
		compiled, _ = expressions.LoadOrStore(pattern, regexp.MustCompile(`^(?:`+pattern+`)$`))
	}
	return compiled.(*regexp.Regexp)
}

var expressions sync.Map

// masked is what must come of a text, found by trying every part of it.
func masked(g Guardrail, text string) (out string, spans []Span) {
	type match struct{ start, end, rule int }
	var found []match
	for n, r := range g.Rules {
		whole := wholly(r.Pattern.Pattern)
		for start := range len(text) {
			for end := start + 1; end <= len(text); end++ {
				if whole.MatchString(text[start:end]) {
					found = append(found, match{start, end, n})
				}
			}
		}
	}
	slices.SortFunc(found, func(a, b match) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end), cmp.Compare(a.rule, b.rule))
	})
	at := 0
	for i := 0; i < len(found); {
		m := found[i]
		for i < len(found) && found[i].start < m.end {
			m.end = max(m.end, found[i].end)
			i++
		}
		kind := capitals(g.Rules[m.rule].Pattern.Name)
		out += text[at:m.start] + "[" + kind + "]"
		spans, at = append(spans, Span{Kind: kind, Start: m.start, End: m.end}), m.end
	}
	return out + text[at:], spans
}

var small = []Rule{own("one", `ab{1,3}c`), own("two", `a[bc]{2,4}`), own("three", `b.{0,2}d`), own("four", `(?:dd|ca){1,2}`), own("five", `cab|dab`)}

func someRules(t *rapid.T) []Rule {
	chosen := rapid.Permutation(small).Draw(t, "rules")
	return slices.Clone(chosen[:rapid.IntRange(1, len(chosen)).Draw(t, "count")])
}

func TestEverythingThatMatchesIsMasked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := masking(t, someRules(t)...)
		text := rapid.StringOfN(rapid.RuneFrom([]rune("abcd ")), 0, 30, -1).Draw(t, "text")
		want, spans := masked(g, text)
		given, s := inPieces(g, cut(t, text))
		require.Equal(t, want, given[len(given)-1])
		require.Equal(t, spans, s.spans)
		for _, shown := range given {
			require.True(t, strings.HasPrefix(want, shown), "%q was shown, and the text is %q", shown, want)
		}
	})
}

// What is held back is what some continuation of the text would mask, and one more character at the most.
func TestNoMoreIsHeldBackThanMustBe(t *testing.T) {
	var continuations []string
	for length := 0; length <= 4; length++ {
		for n := range 1 << (2 * length) {
			var b strings.Builder
			for range length {
				b.WriteByte("abcd"[n&3])
				n >>= 2
			}
			continuations = append(continuations, b.String())
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		g := masking(t, someRules(t)...)
		text := rapid.StringOfN(rapid.RuneFrom([]rune("abcd")), 1, 6, -1).Draw(t, "text")
		certain, _ := masked(g, text[:len(text)-1])
		for _, more := range continuations {
			full, _ := masked(g, text[:len(text)-1]+more)
			n := 0
			for n < min(len(full), len(certain)) && full[n] == certain[n] {
				n++
			}
			certain = certain[:n]
		}
		given, _ := inPieces(g, []string{text})
		require.GreaterOrEqual(t, len(given[0]), len(certain), "%q is certain of %q, and %q was shown of %q", certain, text[:len(text)-1], given[0], text)
	})
}

func TestABlockedTextEndsBeforeTheMatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		said := someRules(t)
		for i := range said {
			if rapid.Bool().Draw(t, "block") {
				said[i].Action = Block
			}
		}
		g := masking(t, said...)
		text := rapid.StringOfN(rapid.RuneFrom([]rune("abcd ")), 0, 30, -1).Draw(t, "text")
		whole, s := inPieces(g, []string{text})
		given, p := inPieces(g, cut(t, text))
		want := whole[len(whole)-1]
		require.Equal(t, want, given[len(given)-1])
		require.Equal(t, s.spans, p.spans)
		require.Equal(t, s.why, p.why)
		for _, shown := range given {
			require.True(t, strings.HasPrefix(want, shown))
		}
		blocks := false
		for _, r := range g.Rules {
			blocks = blocks || r.Action == Block && regexp.MustCompile(r.Pattern.Pattern).MatchString(text)
		}
		require.Equal(t, blocks, s.block != nil)
		if blocks { // nothing of the match, nor of anything behind it
			last := s.spans[len(s.spans)-1]
			require.Equal(t, s.block.start, last.Start)
			before, _ := masked(g, text[:last.Start])
			require.LessOrEqual(t, len(want), max(len(before), last.Start+7*len(s.spans)))
		}
	})
}

// pieces of text in which built-in rules find something, nothing, or nearly something.
var pieces = []string{
	"ada@example.com", "ada.lovelace+x@mail.example.co.uk", "@", "a@b", "x@y.", " ", "  ", "\n", ".", "Hello", "straße", "日本", "🙂", "\u200b", "\u00ad", "é", "e\u0301", "ａｄａ＠ｅｘａｍｐｌｅ．ｃｏｍ",
	"4111 1111 1111 1111", "4111-1111", "5500000000000004", "4111111111111112", "12", "7", "DE89 3704 0044 0532 0130 00", "DE89370400440532013001", "GB29NWBK60161331926819",
	"+49 30 1234567", "(555) 123-4567", "0171 2345678", "01-02-2026", "2026-01-02", "078-05-1120", "000-12-3456", "192.168.1.20", "999.1.1.1", "2001:db8::1", "12:30:45",
	"AKIAIOSFODNN7EXAMPLE", "AKIA", "-----BEGIN RSA PRIVATE KEY-----", "\nMIIEowIBAAKCAQEAwJ8v0Jt0Zk3q9m2", "\nQUJD", "-----END RSA PRIVATE KEY-----",
	"ghp_0123456789abcdefghijABCDEFGHIJ012345", "xoxb-123456789012-abcdef", "sk_live_0123456789abcdefGHIJ", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.sig-nature_0",
	"password = ", "api_key: \"", "token=", "q7Jx0Zp4Lm9Vt2Ws8", "aaaaaaaaaaaaaaaa", "hunter2", "SALARY", "s\u200balaries of", " the  CEO", "gehälter", "給与", "\xff", "\xe6\x97",
}

var everything = []Rule{
	{BuiltIn: []BuiltIn{AWSAccessKey, PrivateKey, GitHubToken, SlackToken, StripeKey, JWT, Secret}},
	{BuiltIn: []BuiltIn{EMail, Phone, CreditCard, IBAN, USSSN, IPAddress}},
	{Topic: &Topic{"pay", []string{"salary", "salaries of the CEO", "Gehälter", "給与"}}},
	own("number", `\bEMP-\d{3,6}\b`),
}

func TestAStreamGivesOutTheMaskedTextHoweverItIsCut(t *testing.T) {
	g := masking(t, slices.Clone(everything)...)
	bound := 0
	for _, r := range g.compiled {
		bound = max(bound, hold(t, r.program))
	}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 12).Draw(t, "pieces"), rapid.SampledFrom([]string{"", " ", "\u200b"}).Draw(t, "between"))
		whole, s := inPieces(g, []string{text})
		want := whole[len(whole)-1]
		rebuilt, at := "", 0
		for _, span := range s.spans { // what is not in a span is as it was
			require.GreaterOrEqual(t, span.Start, at)
			rebuilt, at = rebuilt+text[at:span.Start]+"["+span.Kind+"]", span.End
		}
		require.Equal(t, rebuilt+text[at:], want)

		shown, p := "", newScanner(g.compiled, Output)
		for _, piece := range cut(t, text) {
			p.write(piece)
			shown += p.take()
			require.True(t, strings.HasPrefix(want, shown), "%q was shown, and the text is %q", shown, want)
			require.LessOrEqual(t, utf8.RuneCount(p.text[p.given-p.base:]), (bound+1)*(maxQuiet+1))
		}
		p.finish()
		shown += p.take()
		require.Equal(t, want, shown)
		require.Equal(t, s.spans, p.spans)
	})
}

func ExampleDecision_Record() {
	g := Guardrail{ID: "0198", Kind: Rules, Rules: []Rule{{Stages: Stages, Action: Mask, BuiltIn: []BuiltIn{EMail}}}}
	d, err := Checker{}.Check(context.Background(), g, Input, []string{"Write to ada@example.com."})
	fmt.Println(d.Action, d.Texts, d.Reason, d.Spans, err)
	// Output: mask [Write to [EMAIL].] personal data: e-mail address [{EMAIL 0 9 24}] <nil>
}
