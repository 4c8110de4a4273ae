package webhook

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/agentplatform/agentplatform/pkg/fault"
)

// maxDepth is how deep a body may be nested: far beyond what systems send, far below what would exhaust a parser's stack.
const maxDepth = 100

// Payload is the body of a call, as it came: a JSON object or array. ReadPayload makes one.
type Payload []byte

// ReadPayload takes any JSON object or array.
func ReadPayload(raw []byte) (Payload, error) {
	if !utf8.Valid(raw) || !json.Valid(raw) {
		return nil, fault.Invalid("the body is not valid JSON")
	}
	switch depth, first := nesting(raw); {
	case depth > maxDepth:
		return nil, fault.Invalid("the body is nested more than %d levels deep", maxDepth)
	case first != '{' && first != '[':
		return nil, fault.Invalid("the body must be a JSON object or array")
	}
	return raw, nil
}

// message is the body's own.
func (p Payload) message() (said string, err error) {
	var members map[string]json.RawMessage
	var is *string
	if json.Unmarshal(p, &members) != nil || json.Unmarshal(members["message"], &is) != nil || is == nil {
		return "", fault.Invalid("the body has no string message, and the webhook has no prompt")
	}
	return *is, checkMessage(*is)
}

// nesting is how deep a JSON text is nested, and its first character.
func nesting(raw []byte) (deepest int, first byte) {
	depth, inString := 0, false
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		if first == 0 && c > ' ' {
			first = c
		}
		switch {
		case c == '\\': // only in strings
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest, first
}
