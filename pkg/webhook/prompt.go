package webhook

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/text"
	"github.com/agentplatform/agentplatform/pkg/thread"
)

var (
	braces      = regexp.MustCompile(`(?s)\{\{(.*?)\}\}`)
	placeholder = regexp.MustCompile(`^\s*payload((?:\.[^.{}\s]+)*)\s*$`)
)

// checkPrompt refuses placeholders that no payload could fill.
func checkPrompt(prompt string) error {
	for _, m := range braces.FindAllStringSubmatch(prompt, -1) {
		if !placeholder.MatchString(m[1]) {
			return fault.Invalid("prompt holds {{%.50s}}; a placeholder is {{payload}} or {{payload.path.to.a.member}}", m[1])
		}
	}
	return nil
}

// message is the user message of a call: the webhook's prompt with the body's values in it, or the body's own message.
func message(prompt *string, payload Payload) (string, error) {
	if prompt == nil {
		return payload.message()
	}
	body, err := readJSON(payload)
	if err != nil {
		return "", err
	}
	var said strings.Builder
	written := 0
	for _, found := range braces.FindAllStringSubmatchIndex(*prompt, -1) {
		path := placeholder.FindStringSubmatch((*prompt)[found[2]:found[3]])
		said.WriteString((*prompt)[written:found[0]])
		said.WriteString(spell(at(body, strings.Split(path[1], ".")[1:])))
		if written = found[1]; said.Len() > thread.MaxBody { // a prompt may name a large value a thousand times
			break
		}
	}
	said.WriteString((*prompt)[written:])
	return said.String(), checkMessage(said.String())
}

func checkMessage(said string) error { return text.Check("the message", said, 1, thread.MaxBody) }

// at follows names and list positions; nil: there is nothing.
func at(v any, path []string) any {
	for _, name := range path {
		switch in := v.(type) {
		case map[string]any:
			v = in[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(in) {
				return nil
			}
			v = in[i]
		default:
			return nil
		}
	}
	return v
}

// spell puts a value into a text: strings as they are, nothing for null, everything else as JSON.
func spell(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	var raw strings.Builder
	e := json.NewEncoder(&raw)
	e.SetEscapeHTML(false) // it goes to people and models, not into a page
	_ = e.Encode(v)        // it was read from JSON
	return strings.TrimSuffix(raw.String(), "\n")
}
