package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/thread"
)

// MaxOutput bounds one tool's result, in bytes.
const MaxOutput = 64 << 10

// Use is how an agent calls tools: in its turns, and in the steps of routines.
type Use struct {
	Tools  Registry // all that there are
	Grants []string // the agent's; see Tool.Granted

	// What of an input, or of a result, may pass, or else why nothing may; nil: all of it.
	PassInput, PassOutput func(ctx context.Context, value json.RawMessage) (passed json.RawMessage, blocked string)

	Signal func(point string) // tests; nil: none
}

// Call calls the tool of that name. Whatever comes of it is a result, never an error. A tool that asks a person has none: the question comes back
// instead. lost says that an earlier call of the same may have been made, whose outcome is not known: only an idempotent tool is called again.
func (u Use) Call(ctx context.Context, name string, c Call, lost bool) (result thread.ToolResult, asks *Asks) {
	began := time.Now()
	result = thread.ToolResult{ToolCallID: c.ID, Name: name}
	fail := func(status thread.ToolStatus, why string) (thread.ToolResult, *Asks) {
		result.Status, result.Error = status, &why
		result.DurationMs = time.Since(began).Milliseconds()
		return result, nil
	}
	t, known := u.Tools[name]
	switch {
	case !known && !(Tool{Name: name}).Granted(u.Grants), known && !t.Granted(u.Grants):
		return fail(thread.ToolDenied, fmt.Sprintf("the tool %q is not granted to this agent", name))
	case !known:
		return fail(thread.ToolError, fmt.Sprintf("there is no tool %q", name))
	case lost && !t.Idempotent:
		return fail(thread.ToolError, "interrupted, outcome unknown")
	}
	input, blocked := pass(ctx, u.PassInput, c.Input)
	if blocked != "" {
		return fail(thread.ToolDenied, blocked)
	}
	if err := t.Check(input); err != nil {
		return fail(thread.ToolError, fault.From(err).Message)
	}
	timeout := t.Timeout
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, min(timeout, MaxTimeout))
	defer cancel()
	c.Input = input
	u.signal("tool called")
	value, err := run(ctx, t, c)
	u.signal("tool ended")
	switch {
	case errors.As(err, &asks):
		return result, asks
	case errors.Is(err, context.DeadlineExceeded):
		return fail(thread.ToolTimeout, fmt.Sprintf("no result within %s", timeout))
	case err != nil:
		f := fault.From(err)
		if f.Type == fault.InternalError && !errors.Is(err, context.Canceled) { // a stop, or an interrupt
			slog.ErrorContext(ctx, "tool failed", "tenant_id", c.TenantID, "turn_id", c.TurnID, "tool", name, "error", err)
		}
		return fail(thread.ToolError, f.Message)
	}
	output, err := json.Marshal(value)
	switch {
	case err != nil:
		return fail(thread.ToolError, "the result is not JSON")
	case len(output) > MaxOutput:
		return fail(thread.ToolError, fmt.Sprintf("the result is longer than %d bytes; ask for less", MaxOutput))
	}
	passed, blocked := pass(ctx, u.PassOutput, output)
	if blocked != "" {
		return fail(thread.ToolDenied, blocked)
	}
	text := string(passed)
	result.Status, result.Output, result.DurationMs = thread.ToolOK, &text, time.Since(began).Milliseconds()
	return result, nil
}

func (u Use) signal(point string) {
	if u.Signal != nil {
		u.Signal(point)
	}
}

func pass(ctx context.Context, by func(context.Context, json.RawMessage) (json.RawMessage, string), value json.RawMessage) (json.RawMessage, string) {
	if by == nil {
		return value, ""
	}
	return by(ctx, value)
}

// run calls a tool; its panic is its own failure.
func run(ctx context.Context, t Tool, c Call) (value any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("tool %s panicked: %v", t.Name, p)
		}
	}()
	return t.Run(ctx, c)
}
