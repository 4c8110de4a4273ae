package offline

import (
	"encoding/json"
	"fmt"
	"strings"
)

// The platform's requests for a summary are recognised by how their system prompt begins; what is to be summarised stands between marks, and so does
// a summary wherever it is shown.
const (
	summaryOpening                     = "You summarise the older part of a conversation"
	conversationBegin, conversationEnd = "<conversation>", "</conversation>"
	summaryBegin, summaryEnd           = "<conversation_summary>", "</conversation_summary>"
)

// The most of a summary, in runes: well below the tokens that are asked for.
const (
	summaryLength  = 2800
	summaryEarlier = 1400 // of the one before
	summaryQuote   = 80   // of a message
)

// block is the text of a message's block of that kind, without its marks.
func (m message) block(begin, end string) (string, bool) {
	for _, b := range m.Content {
		if b.Text == nil {
			continue
		}
		if text, is := strings.CutPrefix(*b.Text, begin); is {
			return strings.TrimSpace(strings.TrimSuffix(text, end)), true
		}
	}
	return "", false
}

// earlier is the summary that stands for the thread's older messages; "" for none.
func (r *request) earlier() string {
	text, _ := r.Messages[0].block(summaryBegin, summaryEnd)
	return text
}

// summarizes reports whether r asks for a summary, and of what: a JSON object a line.
func (r *request) summarizes() (conversation string, ok bool) {
	if !strings.HasPrefix(r.prompt(), summaryOpening) {
		return "", false
	}
	return r.Messages[0].block(conversationBegin, conversationEnd)
}

// summarize tells who the user is, as far as they said it, the summary before, and what the user said first and last.
func summarize(earlier, conversation string) string {
	var said []string
	count := 0
	for line := range strings.Lines(conversation) {
		var m struct{ Role, Text string }
		if json.Unmarshal([]byte(line), &m) != nil {
			continue
		}
		if count++; m.Role == "user" {
			said = append(said, m.Text)
		}
	}
	var text strings.Builder
	if earlier == "" {
		fmt.Fprintf(&text, "The thread began with %d messages.", count)
	} else {
		fmt.Fprintf(&text, "%s Then came %d messages.", shorten(earlier, summaryEarlier), count)
	}
	if name := nameIn(said); name != "" {
		fmt.Fprintf(&text, " The user said: my name is %s.", name)
	}
	for i, s := range said {
		if i < 3 || i >= len(said)-10 {
			fmt.Fprintf(&text, " The user said “%s”.", shorten(s, summaryQuote))
		}
	}
	return shorten(text.String(), summaryLength)
}
