package turn

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/agentplatform/agentplatform/pkg/guardrail"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/metric"
	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/thread"
	"github.com/agentplatform/agentplatform/pkg/tool"
	"github.com/agentplatform/agentplatform/pkg/trace"
)

// seen is what an attempt tells of itself while it runs.
type seen struct {
	ctx     context.Context // below the turn's span
	turn    *trace.Span
	phase   *trace.Span
	request string // of whoever dispatched the turn
	failed  string // by what type of error
}

// Run is Runner.Run for a claimed turn. It tells how the turn ended; nothing when it goes on elsewhere or later.
func (c *Claimed) Run(ctx context.Context) (status Status, err error) {
	a := c.attempt
	ctx = a.observe(ctx, model.Provider(c.runner.Model))
	ended := false
	defer func() {
		if !ended {
			a.seen.failed = "panic"
		}
		a.observed(status, err)
	}()
	status, err = c.run(ctx)
	ended = true
	return status, err
}

// observe begins the spans of the attempt and of its first phase, which have begun with the claim, and says whose work it is.
func (a *attempt) observe(ctx context.Context, provider string) context.Context {
	ctx = trace.In(ctx, trace.Scope{TenantID: a.tenantID, ThreadID: a.threadID, TurnID: a.turnID, AgentID: a.agentID,
		RequestID: cmp.Or(trace.From(ctx).RequestID, a.seen.request)})
	began := a.phases[len(a.phases)-1].StartedAt.Time
	ctx, a.seen.turn = trace.StartAt(ctx, began, trace.Internal, trace.InvokeAgent, a.agentID)
	a.seen.ctx = ctx
	_, a.seen.phase = trace.StartAt(ctx, began, trace.Internal, string(Perception), "")
	if s := a.seen.turn; s != nil {
		s.String(trace.OperationName, trace.InvokeAgent)
		s.String(trace.ProviderName, provider)
		s.String(trace.AgentName, a.agent.name)
		s.String(trace.RequestModel, a.agent.modelID)
		s.Int(trace.Attempt, a.number)
		s.Identify(ctx)
	}
	return ctx
}

// begin begins a phase, which ends the one before. What belongs to it goes below the context that it returns; ctx is the attempt's.
func (a *attempt) begin(ctx context.Context, name PhaseName) context.Context {
	a.phases.begin(name)
	a.seen.phase.End()
	ctx, a.seen.phase = trace.Start(ctx, trace.Internal, string(name), "")
	return ctx
}

// fails remembers why the turn fails.
func (a *attempt) fails(err, cause error) {
	if a.seen.failed = trace.Type(err); errors.Is(cause, errTooLong) {
		a.seen.failed = "timeout"
	}
}

// observed ends the spans of the attempt.
func (a *attempt) observed(status Status, err error) {
	a.seen.phase.End()
	s := a.seen.turn
	if s == nil {
		return
	}
	if status == "" {
		status = Running // in another attempt
	}
	s.String(trace.TurnStatus, string(status))
	s.Int(trace.InputTokens, a.usage.InputTokens+a.usage.CacheReadTokens+a.usage.CacheWriteTokens)
	s.Int(trace.OutputTokens, a.usage.OutputTokens)
	if a.seen.failed == "" {
		a.seen.failed = trace.Type(err)
	}
	s.Fail(a.seen.failed)
	s.End()
}

// toolSpan begins the span of a call. The name of a tool that there is not is the model's invention.
func (a *attempt) toolSpan(ctx context.Context, c *toolCall) (context.Context, *trace.Span) {
	name := c.use.Name
	if _, known := a.tools[name]; !known {
		name = "_OTHER"
	}
	ctx, s := trace.Start(ctx, trace.Internal, trace.ExecuteTool, name)
	if s != nil {
		s.String(trace.OperationName, trace.ExecuteTool)
		s.String(trace.ToolName, name)
		s.String(trace.ToolCallID, c.use.ID)
		s.String(trace.ToolType, trace.FunctionTool)
		s.Identify(ctx)
	}
	return ctx, s
}

// observed ends the span of a call that has its outcome, or puts a question.
func (c *toolCall) observed(s *trace.Span) {
	switch {
	case c.asks != nil:
		s.String(trace.ToolStatus, string(Waiting))
	case c.result.Status != thread.ToolOK:
		s.Fail(string(c.result.Status))
		fallthrough
	default:
		s.String(trace.ToolStatus, string(c.result.Status))
	}
	s.End()
}

// ErrorType is what traces call a turn that cannot succeed.
func (f *failure) ErrorType() string { return "turn_failed" }

// overBudget is a failure for want of money.
type overBudget struct{ *failure }

func (o overBudget) Unwrap() error     { return o.failure }
func (o overBudget) ErrorType() string { return string(budgetExceeded) }

const budgetExceeded = "BudgetExceeded" // as of the error that sendMessage answers with

// ended tells of a turn that is over: once, however many attempts it took.
func (r *Runner) ended(ctx context.Context, a *attempt, e ending) {
	took := map[PhaseName]float64{}
	all := 0.0
	for _, p := range a.phases {
		d := 0.0
		switch {
		case p.Name == Feedback: // its record was written before it could say how long that took
			d = float64(time.Since(p.StartedAt.Time).Microseconds()) / 1000
		case p.DurationMs != nil:
			d = *p.DurationMs
		}
		took[p.Name] += d
		all += d
	}
	ms := func(name string, v float64) metric.Figure {
		return metric.Figure{Name: name, Unit: metric.Milliseconds, Value: v}
	}
	calls := map[stepKind]int{}
	for i, s := range a.journal.steps {
		if s.finished || i < a.journal.next {
			calls[s.kind]++
		}
	}
	u := a.usage
	spent := metric.Set{By: "model", Value: a.agent.modelID, Figures: []metric.Figure{
		metric.Of("tokens.input", u.InputTokens+u.CacheReadTokens+u.CacheWriteTokens), metric.Of("tokens.output", u.OutputTokens), metric.Of("tokens.cached", u.CacheReadTokens)}}
	if micros, known := r.Prices.Cost(a.agent.modelID, u, ident.Now().Time); known {
		usd := float64(micros) / 1e6
		spent.Figures = append(spent.Figures, metric.Figure{Name: "cost", Unit: metric.None, Value: usd})
		a.seen.turn.Float(trace.TurnCost, usd)
	}
	about := []slog.Attr{slog.String("agent_id", a.agentID), slog.Int("attempts", a.number)}
	if a.seen.failed != "" {
		about = append(about, slog.String("error_type", a.seen.failed))
	}
	metric.Emit(ctx, metric.Event{Line: "turn ended", About: about, Sets: []metric.Set{
		{By: "status", Value: string(e.status), Figures: []metric.Figure{metric.Of("turns", 1), ms("turn.duration", all)}},
		{Figures: append([]metric.Figure{ms("turn.perception", took[Perception]), ms("turn.planning", took[Planning]), ms("turn.action", took[Action]), ms("turn.feedback", took[Feedback]),
			metric.Of("turn.model_calls", calls[modelStep]), metric.Of("turn.tool_calls", calls[toolStep])}, a.denials()...)},
		spent,
	}})
}

// denials are what the turn was refused: tools that the agent is not granted or a person has denied, what a guardrail has blocked, and money.
func (a *attempt) denials() (out []metric.Figure) {
	n := map[string]int{}
	for _, o := range a.outcomes {
		t, known := a.tools[o.Name]
		if !known {
			t = tool.Tool{Name: o.Name}
		}
		if o.Status == thread.ToolDenied && !t.Granted(a.agent.tools) {
			n["denials.tool"]++
		}
	}
	for _, d := range a.approvals {
		if d.status == Denied {
			n["denials.approval"]++
		}
	}
	for _, d := range a.guard.decisions {
		if d.Action == guardrail.Block {
			n["denials.guardrail"]++
		}
	}
	if a.seen.failed == budgetExceeded {
		n["denials.budget"]++
	}
	for _, name := range []string{"denials.tool", "denials.approval", "denials.guardrail", "denials.budget"} {
		if n[name] > 0 {
			out = append(out, metric.Of(name, n[name]))
		}
	}
	return out
}
