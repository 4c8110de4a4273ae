// Package tool holds the tools that agents may call. A tool runs only for an agent it is granted to.
package tool

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/jsonschema"
)

// DefaultTimeout ends a tool that names no timeout of its own; MaxTimeout is the longest that one may name.
const (
	DefaultTimeout = 60 * time.Second
	MaxTimeout     = 8 * time.Minute
)

// Tool is one tool.
type Tool struct {
	Name        string          // unique; letters, digits, _ and -, at most 64
	Capability  string          // the word that grants it, and its like; "": its name
	Description string          // for the model
	Schema      json.RawMessage // JSON Schema of the input; nil: anything
	Timeout     time.Duration   // 0: DefaultTimeout
	Idempotent  bool            // may run again when a crash hides its outcome
	Run         func(ctx context.Context, c Call) (any, error)
}

// Call is one use of a tool.
type Call struct {
	TenantID string
	ThreadID string // public; the thread whose turn calls
	AgentID  string
	TurnID   string
	ID       string          // of the call, unique in the turn
	Input    json.RawMessage // as the schema says
}

// Asks is what a tool's Run returns, as its error, to put a question to a person: the turn waits, and the answer becomes the call's result.
type Asks struct{ Question string }

func (a *Asks) Error() string { return "the tool asks a person" }

// Registry is all tools by name.
type Registry map[string]Tool

// Of makes a registry.
func Of(tools ...Tool) Registry {
	r := Registry{}
	for _, t := range tools {
		r[t.Name] = t
	}
	return r
}

// With is r and these besides.
func (r Registry) With(tools []Tool) Registry {
	if len(tools) == 0 {
		return r
	}
	all := maps.Clone(r)
	for _, t := range tools {
		all[t.Name] = t
	}
	return all
}

// Granted are the tools that the grants allow, by name.
func (r Registry) Granted(grants []string) []Tool {
	var out []Tool
	for _, t := range r {
		if t.Granted(grants) {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b Tool) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Granted reports whether one of the words names the tool: its name, its capability, or with a * at the end the beginning of its name.
func (t Tool) Granted(words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool {
		if start, many := strings.CutSuffix(w, "*"); many {
			return strings.HasPrefix(t.Name, start)
		}
		return w == t.Name || t.Capability != "" && w == t.Capability
	})
}

// Check says what is wrong with an input, for the model; nil when the schema allows it.
func (t Tool) Check(input json.RawMessage) error {
	if t.Schema == nil {
		return nil
	}
	s, err := compiled(string(t.Schema))
	if err != nil {
		return fault.Invalid("the tool %s cannot be called: its schema: %v", t.Name, err)
	}
	if err := s.Validate(string(input)); err != nil {
		return fault.Invalid("input: %v", err)
	}
	return nil
}

// schemas are kept by their text: a process has some dozens, and a few hundred where servers bring theirs.
var schemas struct {
	sync.Mutex
	byText map[string]*jsonschema.Schema
}

const mostSchemas = 1000

func compiled(text string) (*jsonschema.Schema, error) {
	schemas.Lock()
	defer schemas.Unlock()
	if s := schemas.byText[text]; s != nil {
		return s, nil
	}
	s, err := jsonschema.Compile(text)
	if err != nil {
		return nil, err
	}
	if schemas.byText == nil || len(schemas.byText) >= mostSchemas {
		schemas.byText = map[string]*jsonschema.Schema{}
	}
	schemas.byText[text] = s
	return s, nil
}
