// Package tool holds the tools that agents may call. A tool runs only for an agent it is granted to.
package tool

import (
	"context"
	"encoding/json"
	"time"
)

// DefaultTimeout ends a tool that names no timeout of its own.
const DefaultTimeout = 60 * time.Second

// Tool is one tool.
type Tool struct {
	Name        string
	Description string          // for the model
	Schema      json.RawMessage // JSON Schema of the input
	Timeout     time.Duration   // 0: DefaultTimeout
	Idempotent  bool            // may run again when a crash hides its outcome
	Run         func(ctx context.Context, c Call) (any, error)
}

// Call is one use of a tool.
type Call struct {
	TenantID string
	ThreadID string // public; the thread whose turn calls
	Input    json.RawMessage
}

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

// Granted are the registered tools among names, in their order.
func (r Registry) Granted(names []string) []Tool {
	var out []Tool
	for _, name := range names {
		if t, ok := r[name]; ok {
			out = append(out, t)
		}
	}
	return out
}
