package channel

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestMentions(t *testing.T) {
	for body, without := range map[string]string{
		"@ada":                                 "",
		"@ada look":                            "look",
		"@ada: look":                           "look",
		"@ada, look, please":                   "look, please",
		"  @ada\nlook":                         "look",
		"please @ada look":                     "please look",
		"look (@ada)":                          "look ()",
		"look @ADA.":                           "look .",
		"@ada @ada twice":                      "twice",
		"so.@ada!":                             "so.!",
		"@ada[bot] look":                       "look",
		"é @ada é":                             "é é",
		"> who?\n\n@ada did":                   "> who?\n\ndid",
		"```\ncode\n```\n@ada look":            "```\ncode\n```\nlook",
		"~~~ go\n```\n~~~\n@ada":               "~~~ go\n```\n~~~",
		"``a ` b`` @ada":                       "``a ` b``",
		"```x``` @ada":                         "```x```",
		"one ` tick @ada":                      "one ` tick",
		"one ` tick\n\n@ada ` tock":            "one ` tick\n\n` tock",
		"\\`@ada is none, @ada \\`is":          "\\`@ada is none, \\`is",
		"<!-- a --> @ada":                      "<!-- a -->",
		"`<!--` @ada `-->`":                    "`<!--` `-->`",
		"text\n    @ada is no code here":       "text\n    is no code here",
		"\n\n    code\n\n@ada":                 "code",
		"```` x\n```\n@ada\n````\n@ada":        "```` x\n```\n@ada\n````",
		"<!--\n```\n-->\n@ada":                 "<!--\n```\n-->",
		"`open\n\n@ada`":                       "`open\n\n`",
		"- [ ] @ada\n- [ ] @grace":             "- [ ] \n- [ ] @grace",
		"look\r\n\r\n@ada\r\n":                 "look",
		"```` @ada ````":                       "none",
		"@ada-agent":                           "none",
		"@adam":                                "none",
		"@ada/team":                            "none",
		"@ada_":                                "none",
		"@ada.example":                         "none",
		"ada":                                  "none",
		"me@ada":                               "none",
		"_@ada":                                "none",
		"https://example.com/@ada":             "none",
		"@@ada":                                "none",
		"\\@ada":                               "none",
		"`@ada`":                               "none",
		"`` @ada ` @ada ``":                    "none",
		"`a\n@ada`":                            "none",
		"> @ada":                               "none",
		"  > @ada":                             "none",
		">> @ada\n> @ada":                      "none",
		"```\n@ada\n```":                       "none",
		"```\n@ada":                            "none",
		"~~~\n@ada\n~~~~":                      "none",
		"```\n@ada\n``` no end\n@ada":          "none",
		"    @ada":                             "none",
		"text\n\n\t@ada\n\n    @ada":           "none",
		"<!-- @ada -->":                        "none",
		"<!--\n@ada\n-->":                      "none",
		"text <!-- \n@ada":                     "none",
		"- ```\n  @ada\n  ```":                 "none",
		"1. > @ada":                            "none",
		"":                                     "none",
		"@":                                    "none",
		strings.Repeat("`", 100) + "\n@ada":    strings.Repeat("`", 100),
		strings.Repeat("@ada ", 1000) + "look": "look",
	} {
		found := mentions(body, "ada")
		if without == "none" {
			require.Empty(t, found, "%q", body)
			continue
		}
		require.NotEmpty(t, found, "%q", body)
		require.Equal(t, without, strings.TrimSpace(withoutParts(body, found)), "%q", body)
	}
	require.Empty(t, mentions("@ada", ""))
}

var withoutParts = without

// Whatever the text is, what is taken for prose is a part of it, in its place; and a large one takes no time, however it is made.
func TestProse(t *testing.T) {
	part := rapid.SampledFrom([]string{"`", "``", "```", "~~~", "\n", "\n\n", "> ", "    ", "\t", "<!--", "-->", "@ada", " ", "\\", "a", "é", "\xff", "\r\n"})
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Join(rapid.SliceOfN(part, 0, 40).Draw(t, "parts"), "")
		said, fence := prose(s)
		if len(said) != len(s) {
			t.Fatalf("%q of %q", said, s)
		}
		for i := range said {
			if said[i] != s[i] && said[i] != ' ' {
				t.Fatalf("%q of %q", said, s)
			}
		}
		if _, still := prose(s + closing(s)); still != "" {
			t.Fatalf("%q ends in code %q after %q", s+closing(s), still, fence)
		}
		for _, m := range mentions(s, "ada") {
			if !strings.HasPrefix(s[m.from:m.to], "@ada") {
				t.Fatalf("%v of %q", m, s)
			}
		}
	})
	for _, s := range []string{"`", "`a`", "`a``b```c", "\n", "\n@ada", "@ada ", "<!--", "<!-->", "<!---->", "> ", "    `\n\n", "```\n", "~", "\\`", "@", "`\n\n", "``` `\n"} {
		long := strings.Repeat(s, 128<<10/len(s))
		mentions(long, "ada")
		without(long, mentions(long, "ada"))
		quiet(long)
	}
	var growing strings.Builder
	for n := 1; growing.Len() < 128<<10; n++ {
		growing.WriteString(strings.Repeat("`", n) + "a")
	}
	mentions(growing.String(), "ada")
}

func TestQuiet(t *testing.T) {
	for body, want := range map[string]string{
		"Ask @ada or @org/team.":         "Ask @\u200bada or @\u200borg/team.",
		"ada@example.com":                "ada@example.com",
		"`@ada` and ```\n@ada":           "`@ada` and ```\n@\u200bada",
		"```\n@ada\n```\n@ada":           "```\n@ada\n```\n@\u200bada",
		"> @ada":                         "> @ada", // nobody is notified by a quote
		"@":                              "@",
		"a @ b":                          "a @ b",
		"<!-- @ada -->@grace":            "<!-- @ada -->@\u200bgrace",
		"https://example.com/@ada, @1st": "https://example.com/@ada, @\u200b1st",
	} {
		require.Equal(t, want, quiet(body))
	}
}

func TestCalm(t *testing.T) {
	for body, want := range map[string]string{
		"<!channel> <!here|here> <!subteam^S1|@all> <@U1> <@W1|ada>": "<\u200b!channel> <\u200b!here|here> <\u200b!subteam^S1|@all> <\u200b@U1> <\u200b@W1|ada>",
		"@channel, @here and @everyone; @hereabouts":                 "@\u200bchannel, @\u200bhere and @\u200beveryone; @hereabouts",
		"<!-- a --> <#C1|general> x <@ y a <!= b @ada":               "<!-- a --> <#C1|general> x <@ y a <!= b @ada",
	} {
		require.Equal(t, want, calm(body))
	}
}

func TestSlackMarkdown(t *testing.T) {
	for s, want := range map[string]string{
		"a &lt; b &amp;&amp; c &gt; d": "a < b && c > d",
		"&amp;lt;":                     "&lt;",
		"&quot; &nbsp; &":              "&quot; &nbsp; &",
		"see <https://example.com/x?y=1&amp;z=2|the page>":     "see [the page](https://example.com/x?y=1&z=2)",
		"<https://example.com/x>":                              "https://example.com/x",
		"<http://example.com|http://example.com>":              "http://example.com",
		"<http://example.com|example.com>":                     "example.com",
		"<http://example.com/|example.com>":                    "example.com",
		"<mailto:ada@example.com|ada@example.com>":             "ada@example.com",
		"<mailto:ada@example.com>":                             "mailto:ada@example.com",
		"<https://example.com/a_(b)|a [b] \\ c>":               `[a \[b\] \\ c](https://example.com/a_%28b%29)`,
		"<https://example.com|&lt;b&gt;>":                      "[<b>](https://example.com)",
		"in <#C222|general> or <#C333>":                        "in #general or #C333",
		"<@U1|ada> and <@U2> and <@W3|@grace>":                 "@ada and @U2 and @grace",
		"<!here> <!channel|@channel> <!subteam^S1|@ops>":       "@here @channel @ops",
		"<!subteam^S1> <!date^1392734382^{date}|Feb 18, 2014>": "@S1 Feb 18, 2014",
		"<@UBOT> hi":        "hi",
		"<@UBOT|agent>: hi": "hi",
		"hi <@UBOT> there":  "hi there",
		"hi <@UBOT>":        "hi",
		"hi, <@UBOT>?":      "hi, ?",
		"<@UBOT> <@U1> hi":  "@U1 hi",
		"<> <|> < > <a":     "<> <|> < > <a",
		"*bold* _italic_ ~strike~ `code` :tada:\n```a\nb```\n> q": "*bold* _italic_ ~strike~ `code` :tada:\n```a\nb```\n> q",
		"": "",
	} {
		got, mentioned := slackMarkdown(s, "UBOT")
		require.Equal(t, want, got, "%q", s)
		require.Equal(t, strings.Contains(s, "<@UBOT"), mentioned, "%q", s)
	}
	_, mentioned := slackMarkdown("<@>", "")
	require.False(t, mentioned, "no bot is mentioned as long as nobody knows who it is")
}

func TestAttached(t *testing.T) {
	many := strings.Fields(strings.Repeat("a ", 12))
	for _, c := range []struct {
		body  string
		files []string
		want  string
	}{
		{"hi\n", nil, "hi"},
		{" ", nil, "[no text]"},
		{"hi", []string{"a.png"}, "hi\n\n[1 attachment was left out: a.png]"},
		{"", []string{"a\nb", ""}, "[2 attachments were left out: a b, a file]"},
		{"hi", many, "hi\n\n[12 attachments were left out: a, a, a, a, a, a, a, a, a, a, …]"},
	} {
		require.Equal(t, c.want, attached(c.body, c.files))
	}
}

// The room for what a cut needs is there, however much that is.
func TestFitAtTheBorder(t *testing.T) {
	r := Reply{ID: "1", ThreadID: "SLACK-" + strings.Repeat("1", 19), Body: "```\n" + strings.Repeat("x", 296)}
	require.Equal(t, r.Body+"\n```", fit(r, 304, ""))
	for _, max := range []int{300, 301, 302, 303} {
		require.LessOrEqual(t, units(fit(r, max, "")), max)
		require.Contains(t, fit(r, max, ""), "thread SLACK-1")
	}
	r.Body = strings.Repeat("`", maxFence) + "\n" + strings.Repeat("x", 1000)
	got := fit(r, 1000, "\n\n<!-- id -->")
	require.LessOrEqual(t, units(got), 1000)
	require.Greater(t, units(got), 990)
}

// A reply is never longer than it may be, ends as it must, and is whole if it fits.
func TestFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"word ", "é", "😀", "\n", "```\n", "~~~~\n", "\x00", "\xff"}), 0, 400).Draw(t, "parts"), "")
		max := rapid.IntRange(250, 600).Draw(t, "max")
		end := rapid.SampledFrom([]string{"", "\n\n<!-- id -->"}).Draw(t, "end")
		got := fit(Reply{ID: "1", ThreadID: "SLACK-12", Body: body}, max, end)
		whole := strings.TrimSpace(strings.ToValidUTF8(strings.ReplaceAll(body, "\x00", ""), "\uFFFD"))
		said, _ := prose(strings.TrimSuffix(got, end))
		switch cut := strings.Contains(got, "thread SLACK-12"); {
		case units(got) > max, !utf8.ValidString(got), !strings.HasSuffix(got, end):
			t.Fatalf("%d of %d: %q", units(got), max, got)
		case !cut && !strings.HasPrefix(got, whole):
			t.Fatalf("%q is not all of %q", got, whole)
		case cut && units(whole)+units(end) <= max-100:
			t.Fatalf("%q is cut to %q", whole, got)
		case cut && !strings.Contains(string(said), "thread SLACK-12"):
			t.Fatalf("where the whole is stands in code: %q", got)
		}
	})
}
