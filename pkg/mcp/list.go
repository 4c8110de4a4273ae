package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The bounds of a list.
const (
	MaxTools       = 200
	maxName        = 128      // bytes
	maxDescription = 8 << 10  // bytes
	maxSchema      = 32 << 10 // bytes, as JSON
	maxPages       = 40
	maxDepth       = 32 // of a schema
)

// Tool is a tool as its server lists it.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage // of its input: an object, in one and the same form whatever order the server has
	Idempotent  bool            // says the server: it only reads, or calling it again has no more effect
}

// Tools asks for the list. left says which tools are not in it and why, for a person to read: those over the bounds.
func (s *Session) Tools(ctx context.Context) (tools []Tool, left []string, err error) {
	err = s.during(ctx, s.list, func(ctx context.Context) error {
		tools, left = nil, nil
		named, cursors := map[string]bool{}, map[string]bool{}
		params := &mcp.ListToolsParams{}
		for range maxPages {
			page, err := s.client.ListTools(ctx, params)
			if err != nil {
				return err
			}
			for _, listed := range page.Tools {
				t, why := read(listed)
				switch {
				case why == "" && named[t.Name]:
					why = "it is listed twice"
				case why == "" && len(tools) == MaxTools:
					left = append(left, fmt.Sprintf("the server lists more than %d tools: the others are left out", MaxTools))
					return nil
				}
				if why == "" {
					tools, named[t.Name] = append(tools, t), true
				} else if len(left) < MaxTools {
					left = append(left, fmt.Sprintf("the tool %q is left out: %s", cut(visible(listed.Name), maxName), why))
				}
			}
			if page.NextCursor == "" {
				return nil
			}
			if cursors[page.NextCursor] {
				return s.wire.fail(&Error{Kind: Failed, Reason: "the server's list of tools has no end"})
			}
			cursors[page.NextCursor] = true
			params.Cursor = page.NextCursor
		}
		return s.wire.fail(&Error{Kind: Failed, Reason: "the server's list of tools has no end"})
	})
	return tools, left, err
}

// read checks a tool; why says what is wrong with it.
func read(listed *mcp.Tool) (t Tool, why string) {
	t = Tool{Name: listed.Name, Description: visible(listed.Description)}
	if a := listed.Annotations; a != nil {
		t.Idempotent = a.ReadOnlyHint || a.IdempotentHint
	}
	object, _ := listed.InputSchema.(map[string]any)
	schema, err := json.Marshal(object)
	if err != nil {
		return t, "its schema is not JSON"
	}
	t.Schema = json.RawMessage(visible(string(schema)))
	switch {
	case t.Name == "" || len(t.Name) > maxName || visible(t.Name) != t.Name || strings.ContainsAny(t.Name, "\n\t"):
		return t, fmt.Sprintf("its name must be 1 to %d bytes of visible characters", maxName)
	case len(t.Description) > maxDescription:
		return t, fmt.Sprintf("its description is longer than %d bytes", maxDescription)
	case object["type"] != "object":
		return t, "its schema is not of an object"
	case len(t.Schema) > maxSchema:
		return t, fmt.Sprintf("its schema is longer than %d bytes", maxSchema)
	case deeper(object, maxDepth):
		return t, fmt.Sprintf("its schema is nested deeper than %d levels", maxDepth)
	}
	return t, ""
}

func deeper(v any, than int) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, inner := range v {
			if than == 0 || deeper(inner, than-1) {
				return true
			}
		}
	case []any:
		for _, inner := range v {
			if than == 0 || deeper(inner, than-1) {
				return true
			}
		}
	}
	return false
}

// visible is s without what a person who reads it does not see but a model does: control and format characters (tags, bidirectional overrides, zero-width
// spaces), and bytes that are no UTF-8. Joiners stay: words and emoji need them.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\u200c' || r == '\u200d':
			return r
		case r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co):
			return -1
		}
		return r
	}, s)
}

// cut is at most the first n bytes of s, whole characters.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
