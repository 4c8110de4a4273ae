package webhook

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/agentplatform/agentplatform/pkg/fault"
)

// maxDepth is how deep a body may be nested: far beyond what systems send, far below what would exhaust a parser's stack.
const maxDepth = 100

// Payload is the body of a call.
type Payload struct {
	raw  []byte
	body any // numbers as they are written
}

// ReadPayload takes any JSON object or array.
func ReadPayload(raw []byte) (Payload, error) {
	if !utf8.Valid(raw) || !json.Valid(raw) {
		return Payload{}, fault.Invalid("the body is not valid JSON")
	}
	switch depth, first := nesting(raw); {
	case depth > maxDepth:
		return Payload{}, fault.Invalid("the body is nested more than %d levels deep", maxDepth)
	case first != '{' && first != '[':
		return Payload{}, fault.Invalid("the body must be a JSON object or array")
	}
	body, err := readJSON(raw)
	return Payload{raw, body}, err
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
