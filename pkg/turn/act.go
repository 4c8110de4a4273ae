package turn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/pkg/thread"
	"github.com/agentplatform/agentplatform/pkg/tool"
)

// parallelTools bounds how many tools of one answer run at a time.
const parallelTools = 8

// act runs the tools that the model asked for, in parallel, and gives it their results. Before: planned is finished and the tool steps
// are started; after: the tool steps are finished and the next model call is started. Each is one write.
func (r *Runner) act(ctx context.Context, a *attempt, out *stream, planned *step, uses []model.ToolUse) error {
	a.phases.begin(Action)
	names := make([]string, len(uses))
	for i, u := range uses {
		names[i] = u.Name
		a.calls = append(a.calls, thread.ToolCall{ID: u.ID, Name: u.Name, Input: string(u.Input)})
	}
	resumed := planned.finished
	if !resumed {
		planned.finished = true
		if err := r.record(ctx, a, []step{*planned}, a.journal.plan(toolStep, names...)); err != nil {
			return err
		}
		r.signal("tools started")
	}
	out.status(publish.CallingTool, "calling "+strings.Join(names, ", "))

	results := make([]thread.ToolResult, len(uses))
	steps := make([]*step, len(uses))
	fresh := make([]bool, len(uses))
	var g errgroup.Group
	g.SetLimit(parallelTools)
	for i, use := range uses {
		s := a.journal.take()
		steps[i], fresh[i] = s, !s.finished
		g.Go(func() error {
			if s.finished {
				return json.Unmarshal(s.response, &results[i])
			}
			results[i] = r.call(ctx, a, use, resumed)
			var err error
			s.response, err = json.Marshal(results[i])
			s.finished = results[i].Status == thread.ToolOK || ctx.Err() == nil // a tool that was cut short has no outcome
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	var finished []step
	for i, s := range steps {
		if fresh[i] && s.finished {
			finished = append(finished, *s)
		}
	}
	if ctx.Err() != nil {
		a.left = finished
		return context.Cause(ctx)
	}
	a.outcomes = append(a.outcomes, results...)
	a.history = append(a.history, model.Message{Role: model.User, Blocks: blocks(results)})
	if next := a.journal.plan(modelStep, a.agent.modelID); len(finished)+len(next) > 0 {
		if err := r.record(ctx, a, finished, next); err != nil {
			return err
		}
		r.signal("tools finished")
	}
	return nil
}

// call runs one tool. Whatever comes of it is a result for the model and the record, never an error of the turn.
func (r *Runner) call(ctx context.Context, a *attempt, use model.ToolUse, resumed bool) thread.ToolResult {
	began := time.Now()
	result := thread.ToolResult{ToolCallID: use.ID, Name: use.Name}
	fail := func(status thread.ToolStatus, why string) thread.ToolResult {
		result.Status, result.Error = status, &why
		result.DurationMs = time.Since(began).Milliseconds()
		return result
	}
	t, known := r.Tools[use.Name]
	switch {
	case !slices.Contains(a.agent.tools, use.Name):
		return fail(thread.ToolDenied, fmt.Sprintf("the tool %q is not granted to this agent", use.Name))
	case !known:
		return fail(thread.ToolError, fmt.Sprintf("there is no tool %q", use.Name))
	case resumed && !t.Idempotent:
		return fail(thread.ToolError, "stopped before its end, outcome unknown")
	}
	timeout := t.Timeout
	if timeout == 0 {
		timeout = tool.DefaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	value, err := run(ctx, t, tool.Call{TenantID: a.tenantID, ThreadID: a.threadID, Input: use.Input})
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fail(thread.ToolTimeout, fmt.Sprintf("no result within %s", timeout))
	case err != nil:
		f := fault.From(err)
		if f.Type == fault.InternalError && !errors.Is(err, context.Canceled) { // a stop, or an interrupt
			slog.ErrorContext(ctx, "tool failed", "tenant_id", a.tenantID, "turn_id", a.turnID, "tool", use.Name, "error", err)
		}
		return fail(thread.ToolError, f.Message)
	}
	output, err := json.Marshal(value)
	if err != nil {
		return fail(thread.ToolError, "the result is not JSON")
	}
	if len(output) > maxToolOutput {
		return fail(thread.ToolError, fmt.Sprintf("the result is longer than %d bytes; ask for less", maxToolOutput))
	}
	text := string(output)
	result.Status, result.Output, result.DurationMs = thread.ToolOK, &text, time.Since(began).Milliseconds()
	return result
}

// run calls a tool; its panic is its own failure.
func run(ctx context.Context, t tool.Tool, c tool.Call) (value any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("tool %s panicked: %v", t.Name, p)
		}
	}()
	return t.Run(ctx, c)
}

func blocks(results []thread.ToolResult) []model.Block {
	out := make([]model.Block, len(results))
	for i, r := range results {
		b := &model.ToolResult{ToolUseID: r.ToolCallID, Status: model.ResultOK}
		if r.Status == thread.ToolOK {
			b.Output = json.RawMessage(*r.Output)
		} else {
			b.Status, b.Text = model.ResultError, *r.Error
		}
		out[i] = model.Block{ToolResult: b}
	}
	return out
}
