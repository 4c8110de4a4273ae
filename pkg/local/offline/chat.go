package offline

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

const disclosure = "I am the offline model; start the platform with MODEL=bedrock and AWS credentials for a real one."

var (
	agentName = regexp.MustCompile(`\b(?i:you are|your name is)\s+["“]?(\p{Lu}[\p{L}\p{N}-]*(?: \p{Lu}[\p{L}\p{N}-]*){0,3})`)
	userName  = regexp.MustCompile(`\b(?i:my name is)\s+(\p{L}[\p{L}'’-]*(?: \p{Lu}[\p{L}'’-]*){0,2})`)
	asksName  = regexp.MustCompile(`(?i)\b(what|know|remember|tell me)\b.*\bmy name\b|\bwho am i\b`)
	asksSelf  = regexp.MustCompile(`(?i)\b(who|what) are you\b|\b(what|which) (model|ai|llm)\b|\byour name\b|\bare you (a |an |the )?(real|human|bot|ai|robot|model|offline)\b`)
	asksFirst = regexp.MustCompile(`(?i)\bfirst\b.*\b(did i|i said?|i ask(ed)?|my)\b|\b(did i|i said|i asked|my)\b.*\bfirst\b`)
	asksPrior = regexp.MustCompile(`(?i)\b(did i (just )?(say|ask|tell)|i (just )?(said|asked|told)|my (last|previous))\b`)
	asksCount = regexp.MustCompile(`(?i)\bhow many messages\b`)
	asks      = regexp.MustCompile(`(?i)\?\s*$|^(what|who|when|where|why|how|which|can|could|do|does|did|is|are|will|would|should|please|tell)\b`)
)

// converse answers text, the newest part of the thread.
func converse(r *request, text string) string {
	said, messages := r.history()
	var sentences []string
	add := func(format string, args ...any) { sentences = append(sentences, fmt.Sprintf(format, args...)) }
	aboutMe := asksSelf.MatchString(text)
	if messages == 1 {
		add("Hello.")
	}
	if messages == 1 || aboutMe {
		if m := agentName.FindStringSubmatch(r.prompt()); m != nil {
			add("My name is %s.", m[1])
		}
		add(disclosure)
	}
	question := asks.MatchString(text)
	earlier := said[:len(said)-1]
	name := nameIn(append([]string{r.earlier()}, said...))
	switch {
	case asksName.MatchString(text):
		if name == "" {
			add("You have not told me your name in this thread.")
		} else {
			add("Your name is %s.", name)
		}
	case asksCount.MatchString(text): // the closing sentence answers
	case question && asksFirst.MatchString(text) && len(earlier) > 0:
		add("The first thing you said was “%s”.", quote(earlier[0]))
	case question && asksPrior.MatchString(text) && len(earlier) > 0:
		add("Before that you said “%s”.", quote(earlier[len(earlier)-1]))
	case userName.MatchString(text):
		add("Nice to meet you, %s.", name)
	case aboutMe:
		add("You asked “%s”.", quote(text))
	case text == "":
		add("You sent me nothing but instructions.")
	case question:
		add("You asked “%s”.", quote(text))
		add("I cannot look that up, but I remember this thread and can call tools.")
	default:
		add("You said “%s”.", quote(text))
		if len(earlier) > 0 {
			add("Before that it was “%s”.", quote(earlier[len(earlier)-1]))
		}
	}
	if data := r.Messages[len(r.Messages)-1].data(); data != "" {
		add("It came with %s.", quote(data))
	}
	if messages == 1 {
		add("This is the first message of the thread.")
	} else {
		add("The thread has %d messages so far.", messages)
	}
	return strings.Join(sentences, " ")
}

// history gives the user's texts, oldest first and never empty, and the number of messages: each text of the user is one (messages
// that queued up arrive joined), tool results are none.
func (r *request) history() (said []string, messages int) {
	for _, m := range r.Messages {
		if m.Role == "assistant" {
			if m.text() != "" {
				messages++
			}
			continue
		}
		said = append(said, m.texts()...)
		messages += len(m.texts())
	}
	return said, messages
}

// nameIn is the name that the user gave last, if any.
func nameIn(said []string) string {
	for i := len(said) - 1; i >= 0; i-- {
		if m := userName.FindStringSubmatch(said[i]); m != nil {
			return m[1]
		}
	}
	return ""
}

// quote is text in one line, cut to fit into a sentence.
func quote(text string) string { return shorten(text, 120) }

func shorten(text string, runes int) string {
	text = strings.Join(strings.Fields(text), " ")
	if utf8.RuneCountInString(text) <= runes {
		return text
	}
	return string([]rune(text)[:runes-1]) + "…"
}
