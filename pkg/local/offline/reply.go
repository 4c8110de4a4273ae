package offline

import (
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// reply is a composed answer, before it is written or fails.
type reply struct {
	tokens []string // the text in pieces of about a word
	tools  []toolUse
	stop   string
	usage  usage
	slow   time.Duration
	fail   fail
}

type usage struct {
	Input  int `json:"inputTokens"`
	Output int `json:"outputTokens"`
	Total  int `json:"totalTokens"`
}

const help = "Lines that I obey: /say TEXT, /tool NAME {json}, /slow MS, /fail throttle|validation|stream|cut [N]. " +
	"I answer everything else by simple rules from this thread."

// compose decides what to answer. model and body only feed the tool use ids.
func compose(r *request, model string, body []byte) reply {
	last := r.Messages[len(r.Messages)-1]
	s := parse(last.text())
	s.fail = parse(last.newest()).fail
	text, tools := "", []toolUse(nil)
	results := r.results()
	switch {
	case s.wrong != "":
		text = s.wrong
	case s.help:
		text = help
	case len(s.tools) > 0:
		text, tools = strings.Join(s.says, "\n"), s.tools
	case len(s.says) > 0:
		text = strings.Join(s.says, "\n")
	case last.text() != "":
		if rubric, about, ok := r.grades(); ok {
			text = verdict(rubric, about)
		} else if conversation, ok := r.summarizes(); ok {
			text = summarize(r.earlier(), conversation)
		} else {
			text = converse(r, s.rest)
		}
	}
	if results != "" {
		text = strings.TrimSpace(results + " " + text)
	}
	if last.text() == "" { // only tool results: the pace is still that of the question
		s.slow = parse(r.question()).slow
	}
	out := reply{tokens: split(text), slow: s.slow, fail: s.fail, stop: "end_turn"}
	if len(tools) > 0 {
		out.stop = "tool_use"
		sum := hash(model, body)
		for i, t := range tools {
			t.ID = fmt.Sprintf("tooluse_%x_%d", sum[:8], i)
			out.tools = append(out.tools, t)
		}
	}
	out.meter(r)
	return out
}

// results tells what the tools answered, if the last message brings their results.
func (r *request) results() string {
	names := map[string]string{}
	if n := len(r.Messages); n > 1 {
		for _, b := range r.Messages[n-2].Content {
			if b.ToolUse != nil {
				names[b.ToolUse.ID] = b.ToolUse.Name
			}
		}
	}
	var sentences []string
	for _, b := range r.Messages[len(r.Messages)-1].Content {
		if b.ToolResult == nil {
			continue
		}
		verb := "answered"
		if b.ToolResult.Status == "error" {
			verb = "failed"
		}
		sentences = append(sentences, fmt.Sprintf("The tool %s %s: %s.", names[b.ToolResult.ID], verb, shorten(b.ToolResult.text(), 1000)))
	}
	return strings.Join(sentences, " ")
}

// question is the last text that the user wrote.
func (r *request) question() string {
	for i := len(r.Messages) - 1; i >= 0; i-- {
		if m := r.Messages[i]; m.Role == "user" && m.text() != "" {
			return m.text()
		}
	}
	return ""
}

// meter counts the tokens and ends the answer at the request's limit.
func (out *reply) meter(r *request) {
	if c := r.InferenceConfig; c != nil && c.MaxTokens != nil {
		runes := 0
		for i, t := range out.tokens {
			runes += utf8.RuneCountInString(t)
			if tokens(runes) > *c.MaxTokens {
				out.tokens, out.tools, out.stop = out.tokens[:i], nil, "max_tokens"
				break
			}
		}
	}
	in := utf8.RuneCountInString(r.prompt())
	for _, m := range r.Messages {
		in += utf8.RuneCountInString(m.text()) + utf8.RuneCountInString(m.data()) + m.material()
		for _, b := range m.Content {
			if b.ToolUse != nil {
				in += len(b.ToolUse.Name) + utf8.RuneCount(b.ToolUse.Input)
			}
			if b.ToolResult != nil {
				in += utf8.RuneCountInString(b.ToolResult.text())
			}
		}
	}
	if r.ToolConfig != nil {
		for _, t := range r.ToolConfig.Tools {
			if t.Spec != nil {
				in += len(t.Spec.Name) + utf8.RuneCountInString(t.Spec.Description) + utf8.RuneCount(t.Spec.InputSchema.JSON)
			}
		}
	}
	written := 0
	for _, t := range out.tokens {
		written += utf8.RuneCountInString(t)
	}
	for _, t := range out.tools {
		written += len(t.Name) + utf8.RuneCount(t.Input)
	}
	out.usage = usage{Input: tokens(in), Output: tokens(written)}
	out.usage.Total = out.usage.Input + out.usage.Output
}

// tokens estimates: four characters each, at least one.
func tokens(runes int) int { return max(1, (runes+3)/4) }

// split cuts text into words, each with the space after it; joined they are the text.
func split(text string) []string {
	var out []string
	start, space := 0, false
	for i, c := range text {
		if space && !unicode.IsSpace(c) {
			out = append(out, text[start:i])
			start = i
		}
		space = unicode.IsSpace(c)
	}
	if start < len(text) {
		out = append(out, text[start:])
	}
	return out
}

// refusal is the answer of a scripted failure that comes before any text.
func (out *reply) refusal(streaming bool) *refusal {
	switch {
	case out.fail.kind == failThrottle:
		return &refusal{http.StatusTooManyRequests, "ThrottlingException", "Too many requests, please wait before trying again."}
	case out.fail.kind == failValidation:
		return invalid("The request is invalid, as its /fail line asked for.")
	case out.fail.kind == failStream && !streaming:
		return &refusal{http.StatusFailedDependency, "ModelErrorException", "The model failed, as the request's /fail line asked for."}
	}
	return nil
}
