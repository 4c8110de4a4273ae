package channel

import (
	"regexp"
	"strings"
)

// What Slack writes for people, channels and links: <@U1|ada>, <#C1|general>, <!here>, <https://example.com|label>. A < that somebody typed comes as &lt;.
var slackMarkup = regexp.MustCompile(`<([@#!]?)([^<>|\s][^<>|]*)(?:\|([^<>]*))?>`)

var slackEntities = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")

// slackMarkdown is a message of Slack's as Markdown, without the mentions of bot, and whether there were some.
func slackMarkdown(s, bot string) (markdown string, mentioned bool) {
	var b strings.Builder
	var mentions []span
	rest := 0
	for _, m := range slackMarkup.FindAllStringSubmatchIndex(s, -1) {
		b.WriteString(slackEntities.Replace(s[rest:m[0]]))
		rest = m[1]
		kind, to, label := s[m[2]:m[3]], s[m[4]:m[5]], ""
		if m[6] >= 0 {
			label = s[m[6]:m[7]]
		}
		start := b.Len()
		b.WriteString(slackElement(kind, to, label))
		if kind == "@" && to == bot {
			mentions = append(mentions, span{start, b.Len()})
		}
	}
	b.WriteString(slackEntities.Replace(s[rest:]))
	return without(b.String(), mentions), len(mentions) > 0
}

func slackElement(kind, to, label string) string {
	to, label = slackEntities.Replace(to), slackEntities.Replace(label)
	switch {
	case kind == "@" || kind == "#":
		if label == "" {
			label = to
		}
		return kind + strings.TrimPrefix(label, kind)
	case kind == "!" && label != "": // a group, a date
		return label
	case kind == "!":
		name, id, group := strings.Cut(to, "^")
		if group {
			name = id
		}
		return "@" + name
	}
	return link(to, label)
}

var (
	linkLabel = strings.NewReplacer(`\`, `\\`, "[", `\[`, "]", `\]`)
	linkTo    = strings.NewReplacer("(", "%28", ")", "%29", " ", "%20")
)

// link is a link in Markdown. What Slack made one of by itself is what was typed.
func link(to, label string) string {
	_, address, ok := strings.Cut(to, ":")
	if label == "" || label == to {
		return to
	}
	if ok && strings.TrimSuffix(strings.TrimPrefix(address, "//"), "/") == strings.TrimSuffix(label, "/") {
		return label
	}
	return "[" + linkLabel.Replace(label) + "](" + linkTo.Replace(to) + ")"
}
