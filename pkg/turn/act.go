package turn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/agentplatform/agentplatform/pkg/budget"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/pkg/thread"
	"github.com/agentplatform/agentplatform/pkg/tool"
)

// parallelTools bounds how many tools of one answer run at a time.
const parallelTools = 8

// toolCall is one call of an answer on its way.
type toolCall struct {
	use    model.ToolUse
	step   *step
	result thread.ToolResult
	fresh  bool       // this attempt has the result
	lost   bool       // an earlier attempt started it, and its outcome is not known
	asks   *tool.Asks // it put a question to a person
}

// act runs the tools that the model asked for, in parallel, and gives it their results. Before: planned is finished and the tool steps
// are started; after: the tool steps are finished and the next model call is started. Each is one write.
//
// A call that a person must approve first, or that asks a person, stops the turn once the others have ended: the stop says for what.
func (r *Runner) act(ctx context.Context, a *attempt, out *stream, planned *step, uses []model.ToolUse) (*stop, error) {
	ctx = a.begin(ctx, Action)
	for _, u := range uses {
		a.calls = append(a.calls, thread.ToolCall{ID: u.ID, Name: u.Name, Input: string(u.Input)})
	}
	if planned.number <= a.said.steps {
		a.said.calls, a.said.outcomes = len(a.calls), len(a.outcomes)
	}
	calls, err := r.begin(ctx, a, planned, uses)
	if err != nil {
		return nil, err
	}
	if names := running(calls); names != "" {
		out.status(publish.CallingTool, "calling "+names)
	}
	if err := r.runAll(ctx, a, calls); err != nil {
		return nil, err
	}
	var finished []step
	for _, c := range calls {
		if c.fresh && c.step.finished {
			finished = append(finished, *c.step)
		}
	}
	if ctx.Err() != nil {
		a.left = finished
		return nil, context.Cause(ctx)
	}
	if s := stopFor(planned, calls, finished); s != nil {
		return s, nil
	}
	return nil, r.acted(ctx, a, calls, finished)
}

// begin writes the calls' steps before anything runs: those of an answer that is new, or of calls that a person has approved meanwhile.
func (r *Runner) begin(ctx context.Context, a *attempt, planned *step, uses []model.ToolUse) ([]*toolCall, error) {
	calls := make([]*toolCall, len(uses))
	resumed := planned.finished
	var started []step
	var approvals []approval
	if !resumed {
		planned.finished = true
		for _, u := range uses {
			s := a.journal.add(toolStep, u.Name)
			if s.waiting = a.mustBeApproved(u); s.waiting {
				approvals = append(approvals, approval{s.number, u})
			}
			started = append(started, *s)
		}
	}
	for i, u := range uses {
		calls[i] = &toolCall{use: u, step: a.journal.take()}
		s := calls[i].step
		if !resumed || s.finished {
			continue
		}
		switch d := a.approvals[s.number]; {
		case !s.waiting:
			calls[i].lost = true
		case d.status == Approved:
			s.waiting = false
			started = append(started, *s) // from here on it may have run
		case d.status == Denied:
			calls[i].refuse(d.refusal())
		case a.expired:
			calls[i].refuse(fmt.Sprintf("nobody approved the call within %s", approvalTime))
		}
	}
	if resumed && len(started) == 0 {
		return calls, nil
	}
	var finished []step
	if !resumed {
		finished = []step{*planned}
	}
	err := r.record(ctx, a, finished, started, func(b *pgx.Batch) { a.queueApprovals(b, approvals) })
	if err == nil {
		r.signal("tools started")
	}
	return calls, err
}

// runAll runs what has no outcome yet and waits for nobody.
func (r *Runner) runAll(ctx context.Context, a *attempt, calls []*toolCall) error {
	var g errgroup.Group
	g.SetLimit(parallelTools)
	for _, c := range calls {
		switch {
		case c.fresh || c.step.waiting:
			continue
		case c.step.finished:
			if err := json.Unmarshal(c.step.response, &c.result); err != nil {
				return errors.Join(err, g.Wait())
			}
			continue
		}
		g.Go(func() error {
			r.call(ctx, a, c)
			if c.asking() {
				return nil
			}
			c.fresh = true
			response, err := json.Marshal(c.result)
			c.step.response, c.step.finished = response, c.result.Status == thread.ToolOK || ctx.Err() == nil // a tool that was cut short has no outcome
			return err
		})
	}
	return g.Wait()
}

// acted hands the results to the model, and writes them and the model call that comes next.
func (r *Runner) acted(ctx context.Context, a *attempt, calls []*toolCall, finished []step) error {
	results := make([]thread.ToolResult, len(calls))
	for i, c := range calls {
		results[i] = c.result
	}
	a.outcomes = append(a.outcomes, results...)
	a.history = append(a.history, model.Message{Role: model.User, Blocks: blocks(results)})
	var verdict *budget.Verdict
	next := a.journal.plan(modelStep, a.agent.modelID)
	err := r.record(ctx, a, finished, next, func(b *pgx.Batch) {
		verdict = book(r.Prices).Settle(b, a.turnID, a.agent.modelID, a.usage, ident.Now().Time)
	})
	if err != nil {
		return err
	}
	if len(next) > 0 {
		a.ahead = next[0].number
	}
	r.signal("tools finished")
	if over := verdict.Err(); over != nil { // what the next call may cost at the worst is no longer covered
		return overBudget{&failure{over.Message}}
	}
	return nil
}

// asking reports whether the call put a question to a person: its outcome is the answer.
func (c *toolCall) asking() bool { return c.asks != nil }

// refuse gives the call its outcome without running it.
func (c *toolCall) refuse(why string) {
	c.step.waiting, c.step.finished, c.fresh = false, true, true
	c.result = thread.ToolResult{ToolCallID: c.use.ID, Name: c.use.Name, Status: thread.ToolDenied, Error: &why}
	c.step.response, _ = json.Marshal(c.result) // strings and numbers only
}

// running are the names of the calls that run now, for people to read.
func running(calls []*toolCall) string {
	var names []string
	for _, c := range calls {
		if !c.step.finished && !c.step.waiting {
			names = append(names, c.use.Name)
		}
	}
	return strings.Join(names, ", ")
}

// mustBeApproved reports whether the call waits for a person. One that would be refused anyway does not.
func (a *attempt) mustBeApproved(use model.ToolUse) bool {
	t, known := a.tools[use.Name]
	return known && t.Granted(a.agent.tools) && t.Granted(a.agent.approvals) && t.Check(use.Input) == nil
}

// call runs one tool. Whatever comes of it is a result for the model and the record, never an error of the turn.
func (r *Runner) call(ctx context.Context, a *attempt, c *toolCall) {
	ctx, span := a.toolSpan(ctx, c)
	defer c.observed(span)
	use := tool.Use{Tools: a.tools, Grants: a.agent.tools, PassInput: a.passInput, PassOutput: a.passOutput, Signal: r.Signal}
	c.result, c.asks = use.Call(ctx, c.use.Name, tool.Call{TenantID: a.tenantID, ThreadID: a.threadID, AgentID: a.agentID, TurnID: a.turnID, ID: c.use.ID, Input: c.use.Input}, c.lost)
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
