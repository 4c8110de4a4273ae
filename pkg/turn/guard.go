package turn

import (
	"context"
	"encoding/json"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/guardrail"
	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/thread"
)

// blockedBody is what the model is given of a message that a guardrail has blocked.
const blockedBody = "[a guardrail has blocked this message]"

// blockedByGuardrail begins what the model is told of a tool's input, or result, that may not go on.
const blockedByGuardrail = "a guardrail has blocked it: "

// guard is the agent's guardrail at work in one attempt. Everything that goes into the model or a tool, and comes out of one, passes it. It is safe for
// concurrent use: tools run in parallel.
type guard struct {
	checker guardrail.Checker
	rules   *guardrail.Guardrail // nil: the agent has none

	mu        sync.Mutex
	decisions []guardrail.Record
	written   int // of them, in the turn's record
}

// covers reports whether something is to be checked at a stage.
func (g *guard) covers(stage guardrail.Stage) bool { return g.rules != nil && g.rules.Covers(stage) }

// note keeps a decision for the record. What was let through as it was is not worth a line but for the input, where it says that it was looked at.
func (g *guard) note(d guardrail.Decision) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if d.Action != guardrail.Allow || d.Stage == guardrail.Input {
		g.decisions = append(g.decisions, d.Record())
	}
}

// queue writes the decisions with the turn, where there are new ones.
func (g *guard) queue(b *pgx.Batch, turnID string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.decisions) > g.written {
		g.written = len(g.decisions)
		b.Queue(`update thread_turns set guardrail_decisions = $2 where id = $1`, turnID, g.decisions)
	}
}

// admit checks what no guardrail has decided about yet, once: what the turn is asked, with what came with a webhook's call; what a person has answered
// it; and earlier messages, where their turns ended too soon or the agent had no guardrail then. What is masked or blocked is so for later turns too:
// the model is never given the rest. blocked is what is said in the agent's place, where the turn is asked what must not be; "": the model may be asked.
func (r *Runner) admit(ctx context.Context, a *attempt) (blocked string, err error) {
	if !a.guard.covers(guardrail.Input) {
		return "", nil
	}
	if err := a.admitTask(ctx); err != nil {
		return "", err
	}
	var asked, earlier []*line
	for i := range a.lines {
		switch l := &a.lines[i]; {
		case !l.unchecked:
		case l.asked && l.answers == "":
			asked = append(asked, l)
		default:
			earlier = append(earlier, l)
		}
	}
	if len(asked) == 0 && len(earlier) == 0 {
		return "", nil
	}
	now, err := a.admitLines(ctx, asked)
	if err != nil {
		return "", err
	}
	before, err := a.admitEarlier(ctx, earlier)
	if err != nil {
		return "", err
	}
	err = r.record(ctx, a, nil, nil, func(b *pgx.Batch) {
		for _, admitted := range append(before, now) {
			a.queueAdmitted(b, admitted)
		}
	})
	if err != nil {
		return "", err
	}
	r.signal("input checked")
	a.assemble()
	return now.blocked, nil
}

// admitted is messages that were checked together, and what the model is given of them.
type admitted struct {
	lines    []*line
	bodies   []string
	payloads []json.RawMessage // nil: none, or as it is
	blocked  string            // what is said of it; "": it may go on
	why      string            // it is blocked
}

// admitLines checks messages together: where one is blocked, all are.
func (a *attempt) admitLines(ctx context.Context, lines []*line) (admitted, error) {
	g := &a.guard
	out := admitted{lines: lines, payloads: make([]json.RawMessage, len(lines))}
	for _, l := range lines {
		out.bodies = append(out.bodies, l.body)
	}
	if len(lines) == 0 {
		return out, nil
	}
	d, err := g.checker.Check(ctx, *g.rules, guardrail.Input, out.bodies)
	if err != nil {
		return out, err
	}
	g.note(d)
	if d.Action == guardrail.Block {
		out.blocked, out.why = d.Message, d.Reason
	} else {
		out.bodies = d.Texts
	}
	for i, l := range lines {
		if l.payload == nil || out.blocked != "" {
			continue
		}
		with, masked, err := g.checker.JSON(ctx, *g.rules, guardrail.Input, l.payload)
		switch {
		case err != nil:
			return out, err
		case with.Action == guardrail.Allow:
			continue
		case with.Action == guardrail.Block:
			out.blocked, out.why = with.Message, with.Reason
		}
		g.note(with)
		out.payloads[i] = masked
	}
	if out.blocked == "" {
		return out, nil
	}
	for i, l := range lines {
		out.bodies[i] = blockedBody
		if l.payload != nil {
			out.payloads[i] = json.RawMessage(`"` + blockedBody + `"`)
		}
	}
	return out, nil
}

// admitEarlier checks messages together, and, where one is blocked, each by itself.
func (a *attempt) admitEarlier(ctx context.Context, lines []*line) ([]admitted, error) {
	noted := len(a.guard.decisions)
	all, err := a.admitLines(ctx, lines)
	if err != nil || all.blocked == "" || len(lines) == 1 {
		return []admitted{all}, err
	}
	a.guard.decisions = a.guard.decisions[:noted]
	var each []admitted
	for _, l := range lines {
		one, err := a.admitLines(ctx, []*line{l})
		if err != nil {
			return nil, err
		}
		each = append(each, one)
	}
	return each, nil
}

// queueAdmitted takes what was decided into the conversation, and writes it.
func (a *attempt) queueAdmitted(b *pgx.Batch, d admitted) {
	for i, l := range d.lines {
		body := &d.bodies[i]
		if *body == l.body {
			body = nil
		} else {
			l.body = *body
		}
		l.unchecked = false
		b.Queue(`update messages set model_body = $3, checked = true where thread_uuid = $1 and position = $2`, a.threadUUID, l.position, body)
		if d.payloads[i] != nil {
			l.payload = d.payloads[i]
			b.Queue(`update thread_turns set model_payload = $2 where id = $1`, l.turnID, d.payloads[i])
		}
		if l.answers != "" && body != nil {
			a.queueAnswer(b, l.answers, l.body, d.why)
		}
	}
}

// queueAnswer puts in a person's answer's place, as the result of the call that asked, what may be of it.
func (a *attempt) queueAnswer(b *pgx.Batch, call, body, blocked string) {
	for i := range a.journal.steps {
		s := &a.journal.steps[i]
		var result thread.ToolResult
		if s.kind != toolStep || !s.finished || json.Unmarshal(s.response, &result) != nil || result.ToolCallID != call {
			continue
		}
		if blocked == "" {
			s.response, _ = answer(result.ToolCallID, result.Name, body) // a string
		} else {
			why := blockedByGuardrail + blocked
			s.response, _ = json.Marshal(thread.ToolResult{ToolCallID: result.ToolCallID, Name: result.Name, Status: thread.ToolDenied, Error: &why})
		}
		b.Queue(`update turn_steps set response = $3 where turn_id = $1 and number = $2`, a.turnID, s.number, s.response)
	}
}

// passInput checks what the model gives to a tool: the input as it may go on, or why it may not.
func (a *attempt) passInput(ctx context.Context, input json.RawMessage) (json.RawMessage, string) {
	return a.guard.pass(ctx, guardrail.ToolInput, input)
}

// passOutput is the same of what a tool gives to the model.
func (a *attempt) passOutput(ctx context.Context, output json.RawMessage) (json.RawMessage, string) {
	return a.guard.pass(ctx, guardrail.ToolOutput, output)
}

func (g *guard) pass(ctx context.Context, stage guardrail.Stage, value json.RawMessage) (json.RawMessage, string) {
	if !g.covers(stage) {
		return value, ""
	}
	d, masked, err := g.checker.JSON(ctx, *g.rules, stage, value)
	if err != nil { // what cannot be checked does not go on
		return nil, explain(err, context.Cause(ctx))
	}
	g.note(d)
	if d.Action == guardrail.Block {
		return nil, blockedByGuardrail + d.Reason
	}
	return masked, ""
}

// passText checks a text that is shown as a whole.
func (g *guard) passText(ctx context.Context, text string) (string, error) {
	if !g.covers(guardrail.Output) {
		return text, nil
	}
	d, err := g.checker.Check(ctx, *g.rules, guardrail.Output, []string{text})
	if err != nil {
		return "", err
	}
	g.note(d)
	if d.Action == guardrail.Block {
		return d.Message, nil
	}
	return d.Texts[0], nil
}

// guarded is a model's stream behind the guardrail: it gives out what may be shown. Of a blocked answer nothing more is shown; where a check fails, the answer is cut off.
type guarded struct {
	ctx    context.Context
	cancel context.CancelFunc
	rules  *guardrail.Stream
	out    *stream
	shown  strings.Builder
	err    error
}

// guarded begins an answer behind the guardrail; nil when nothing is checked.
func (a *attempt) guarded(ctx context.Context, out *stream) (*guarded, context.Context, error) {
	if !a.guard.covers(guardrail.Output) {
		return nil, ctx, nil
	}
	rules, err := a.guard.checker.Stream(*a.guard.rules, guardrail.Output)
	if err != nil {
		return nil, ctx, err
	}
	g := &guarded{rules: rules, out: out}
	g.ctx, g.cancel = context.WithCancel(ctx)
	return g, g.ctx, nil
}

// Text implements model.Stream.
func (g *guarded) Text(delta string) {
	if g.err == nil {
		g.give(g.rules.Write(g.ctx, delta))
	}
}

// Restart implements model.Stream.
func (g *guarded) Restart() {
	g.rules.Reset()
	g.shown.Reset()
	g.out.Restart()
}

func (g *guarded) give(shown string, err error) {
	g.shown.WriteString(shown)
	if shown != "" {
		g.out.Text(shown)
	}
	if g.err = err; err != nil {
		g.cancel() // nothing more is wanted of the model; of a blocked answer its end is, which says what it cost
	}
}

// answer is the model's answer as it may go on: its text as it was shown. A blocked one ends the turn: it calls no tool.
func (g *guarded) answer(a *attempt, r model.Response, err error) (model.Response, error) {
	defer g.cancel()
	if g.err == nil && !g.rules.Blocked() {
		if err != nil {
			return r, err
		}
		g.give(g.rules.Close(g.ctx))
	}
	if g.err != nil {
		return r, g.err
	}
	d := g.rules.Decision()
	a.guard.note(d)
	if g.rules.Blocked() {
		if g.shown.Len() > 0 {
			g.out.Text("\n\n")
			g.shown.WriteString("\n\n")
		}
		g.out.Text(d.Message)
		g.shown.WriteString(d.Message)
		return model.Response{Blocks: []model.Block{{Text: g.shown.String()}}, StopReason: "guardrail_intervened", Usage: r.Usage}, nil
	}
	return withText(r, g.shown.String()), nil
}

// withText is an answer whose text is another one: all of it stands where the first text stood.
func withText(r model.Response, text string) model.Response {
	if text == r.Text() {
		return r
	}
	blocks := make([]model.Block, 0, len(r.Blocks))
	placed := false
	for _, b := range r.Blocks {
		if b.ToolUse == nil && b.ToolResult == nil {
			if placed {
				continue
			}
			placed, b = true, model.Block{Text: text}
		}
		blocks = append(blocks, b)
	}
	r.Blocks = blocks
	return r
}

// refused ends a turn whose input is blocked with what the guardrail says in the agent's place.
func (r *Runner) refused(a *attempt, out *stream, message string) ending {
	out.Text(message)
	out.keep()
	a.begin(a.seen.ctx, Action)
	return ending{status: Succeeded, reply: a.reply(out)}
}
