package turn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/agent"
	"github.com/agentplatform/agentplatform/pkg/evaluator"
	"github.com/agentplatform/agentplatform/pkg/guardrail"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/notify"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/pkg/thread"
	"github.com/agentplatform/agentplatform/pkg/tool"
	"github.com/agentplatform/agentplatform/pkg/trace"
	"github.com/agentplatform/agentplatform/schema"
)

// Dispatch is the payload that starts a queued turn.
type Dispatch struct {
	TenantID  string           `json:"tenantId"`
	TurnID    string           `json:"turnId"`
	RequestID string           `json:"requestId,omitempty"`       // of the call that the runtime is asked by, for its log
	Published notify.Published `json:"publishedEvents,omitempty"` // by the sender: the claim settles them along the way
}

// DefaultRuntime is the runtime selector of the runtime in this package.
const DefaultRuntime = agent.DefaultRuntime

// Runner runs turns.
type Runner struct {
	DB        *postgres.DB
	Model     model.Model
	Publish   publish.Publisher
	Prices    model.Prices
	Tools     tool.Registry
	Guard     guardrail.Checker                                            // what agents' guardrails are checked by
	Servers   ToolServers                                                  // the tenants' tool servers; nil: none
	Dispatch  func(ctx context.Context, tenantID, turnID string) error     // starts a queued turn, elsewhere and later
	Evaluate  func(ctx context.Context, t evaluator.Task) error            // has a turn rated, elsewhere and later; nil: the sweep finds it
	Summarize func(ctx context.Context, t SummaryTask) error               // has a long thread's older messages summarised, elsewhere and later; nil: they fall out of the window
	Answer    func(ctx context.Context, tenantID, callbackID string) error // has a workflow told that waits for the turn, elsewhere and later; nil: the sweep does
	Reply     func(ctx context.Context, tenantID, threadUUID string) error // has what was said posted where the conversation is, elsewhere and later; nil: the sweep does
	Selected  bool                                                         // a dispatcher chose this runtime by the turn's selector: it is not looked at again
	Signal    func(point string)                                           // tests: called at every point where a crash is tried, by parallel tools at once; nil: none
}

// NewRunner is the runner of every runtime: the platform's prices and tools over these technologies, and the tools that need others.
func NewRunner(db *postgres.DB, m model.Model, to publish.Publisher, dispatch func(ctx context.Context, tenantID, turnID string) error, tools ...tool.Tool) *Runner {
	prices, err := model.ParsePrices(schema.Prices)
	if err != nil {
		panic(err) // embedded: a test would have seen it
	}
	return &Runner{DB: db, Model: m, Publish: to, Prices: prices, Tools: tool.Of(append(tools, tool.ReadThread(db), tool.AskUser())...), Dispatch: dispatch}
}

// ToolServers bring tools of tenants' servers into turns (pkg/toolserver; a function whose turns have none does not link its protocol).
type ToolServers interface {
	// Queue asks for the tools with the turn's other questions; grants is SQL for the agent's words, with these arguments.
	Queue(b *pgx.Batch, tenantID, grants string, args ...any) tool.Offer
}

// Claimed is a turn whose lease this process holds. Whoever has it must Run it.
type Claimed struct {
	runner  *Runner
	attempt *attempt
}

// Why an attempt is cut short; all are causes of its context.
var (
	errInterrupted = errors.New("turn: a later message interrupted the turn")
	errCancelled   = errors.New("turn: a person cancelled the turn")
	errLeaseLost   = errors.New("turn: another attempt took over")
	errTooLong     = fmt.Errorf("the turn took longer than %s", maxDuration)
)

// Run takes a queued turn, or one whose attempt died, to its end. Nothing to do is not an error. An error means that the turn goes on
// later, by whoever takes its lease; a turn that fails for good is recorded as failed and is not an error.
//
// When ctx ends, the process stops: the turn is handed back, and goes on at once wherever it is dispatched to.
func (r *Runner) Run(ctx context.Context, d Dispatch) error {
	c, err := r.Claim(ctx, d)
	if c == nil {
		return err
	}
	_, err = c.Run(ctx)
	return err
}

// Claim takes the turn's lease; nil without an error when there is nothing to do. Once it has begun, the end of ctx does not cut it short: a
// lease that nobody knows of would keep the turn from everybody for as long as it lasts.
func (r *Runner) Claim(ctx context.Context, d Dispatch) (*Claimed, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	ctx, cancel := outlive(trace.In(ctx, trace.Scope{TenantID: d.TenantID, TurnID: d.TurnID}))
	defer cancel()
	a, err := r.perceive(ctx, d)
	for errors.Is(err, errNotDue) {
		room, failed := r.putOff(ctx, d.TenantID, d.TurnID)
		if failed != nil || !room {
			return nil, failed
		}
		a, err = r.perceive(ctx, d)
	}
	if err != nil {
		return nil, err
	}
	a.seen.request = d.RequestID
	r.signal("claimed")
	return &Claimed{r, a}, nil
}

func (c *Claimed) run(ctx context.Context) (Status, error) {
	r, a := c.runner, c.attempt
	tenantID, turnID := a.tenantID, a.turnID
	work, cancel := context.WithTimeoutCause(ctx, maxDuration, errTooLong)
	defer cancel()
	work, held := r.hold(work, a)
	defer held()
	defer a.leave()
	out := newStream(ctx, r, a)
	defer out.close()

	e, err := r.converse(work, a, out)
	if err != nil {
		cause := context.Cause(work)
		switch {
		case errors.Is(cause, errLeaseLost), errors.Is(err, errLeaseLost), isLeaseLost(err):
			return "", nil // another attempt has the turn: it goes on there
		case ctx.Err() != nil:
			held()
			return "", r.handBack(ctx, a)
		case cause == nil && errors.As(err, new(unwritten)):
			return "", err
		case errors.Is(cause, errInterrupted):
			e = a.interrupted(out, Interrupted)
		case errors.Is(cause, errCancelled):
			e = a.interrupted(out, Cancelled)
		default:
			reason := explain(err, cause)
			a.fails(err, cause)
			level := slog.LevelError
			if errors.As(err, new(*failure)) {
				level = slog.LevelWarn // a limit: nothing is wrong with the platform
			}
			slog.Log(ctx, level, "turn failed", "tenant_id", tenantID, "turn_id", turnID, "error", err, "cause", errors.Unwrap(err))
			e = ending{status: Failed, reason: &reason}
		}
	}
	held()
	if e.status == Waiting {
		return r.rested(ctx, a, e)
	}
	failed := slog.LevelWarn
	if ctx.Err() != nil {
		failed = slog.LevelInfo // the process stops: what it fails to dispatch is nothing to worry about
	}
	ctx, end := outlive(ctx) // the turn has ended: a process that stops still writes that down
	defer end()
	e.said = out.finish(e.reply != nil)
	if e.reply != nil {
		e.reply.ID = out.messageID()
	}
	r.signal("reply made")
	notices, next, callback, err := r.feedback(ctx, a, e)
	if isLeaseLost(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	r.ended(ctx, a, e)
	r.signal("committed")
	if callback != "" && r.Answer != nil {
		if err := r.Answer(ctx, tenantID, callback); err != nil {
			slog.Log(ctx, failed, "the workflow that waits for the turn is told later: the function was not started", "tenant_id", tenantID, "turn_id", turnID, "error", err)
		}
	}
	notify.Deliver(ctx, r.DB, r.Publish, tenantID, notices...)
	r.signal("published")
	if e.reply != nil || e.status == Failed {
		r.reply(ctx, failed, a)
	}
	for _, id := range next {
		r.dispatch(ctx, failed, tenantID, id)
		r.signal("next dispatched")
	}
	if a.agent.rated && e.status == Succeeded && r.Evaluate != nil {
		if err := r.Evaluate(ctx, evaluator.Task{TenantID: tenantID, TurnID: turnID}); err != nil {
			slog.Log(ctx, failed, "the turn is rated later: its evaluation was not started", "tenant_id", tenantID, "turn_id", turnID, "error", err)
		}
		r.signal("rating asked")
	}
	if a.outgrown(e) && r.Summarize != nil {
		if err := r.Summarize(ctx, SummaryTask{TenantID: tenantID, ThreadUUID: a.threadUUID}); err != nil {
			slog.Log(ctx, failed, "the thread is summarised after a later turn: the function was not started", "tenant_id", tenantID, "turn_id", turnID, "error", err)
		}
	}
	return e.status, nil
}

func (r *Runner) dispatch(ctx context.Context, failed slog.Level, tenantID, turnID string) {
	if err := r.Dispatch(ctx, tenantID, turnID); err != nil {
		slog.Log(ctx, failed, "dispatch failed; the reaper tries again", "tenant_id", tenantID, "turn_id", turnID, "error", err)
	}
}

// converse alternates planning and action until the model has answered.
func (r *Runner) converse(ctx context.Context, a *attempt, out *stream) (ending, error) {
	if a.number > maxAttempts {
		a.recount()
		return ending{}, &failure{fmt.Sprintf("the turn died %d times", maxAttempts)}
	}
	if !a.begun && !a.agent.status.TakesTurns() {
		return ending{}, &failure{fmt.Sprintf("the agent is %s and takes no turns", a.agent.status)}
	}
	if a.agent.runtime != DefaultRuntime && !r.Selected {
		return ending{}, &failure{fmt.Sprintf("the runtime %q is not part of this deployment; name it in AGENT_RUNTIMES, or another one in the agent or its template", a.agent.runtime)}
	}
	if a.broken != nil {
		return ending{}, a.broken
	}
	if blocked, err := r.admit(ctx, a); err != nil || blocked != "" {
		if err != nil {
			return ending{}, err
		}
		return r.refused(a, out, blocked), nil
	}
	for range maxModelCalls {
		response, s, err := r.plan(ctx, a, out)
		if err != nil {
			return ending{}, err
		}
		uses := response.ToolUses()
		if len(uses) == 0 {
			r.signal("answered")
			a.begin(ctx, Action)
			return ending{status: Succeeded, reply: a.reply(out), last: s}, nil
		}
		if len(a.calls)+len(uses) > maxToolCalls {
			return ending{}, &failure{fmt.Sprintf("the turn asked for more than %d tool calls", maxToolCalls)}
		}
		waits, err := r.act(ctx, a, out, s, uses)
		if err != nil {
			return ending{}, err
		}
		if waits != nil {
			if e, over, err := r.stop(ctx, a, out, waits); over || err != nil {
				return e, err
			}
		}
		out.paragraph()
	}
	return ending{}, &failure{fmt.Sprintf("the turn asked for more than %d model calls", maxModelCalls)}
}

// reply is the assistant message that the turn writes: what was streamed, to the byte. Its id is settled when the stream is finished.
func (a *attempt) reply(out *stream) *thread.Message {
	body := out.text()
	return &thread.Message{ThreadID: a.threadID, Role: thread.Assistant, Body: body, ToolCalls: a.calls[a.said.calls:], ToolResults: a.outcomes[a.said.outcomes:],
		TokenCount: thread.EstimateTokens(body), Model: &a.agent.modelID, TurnID: &a.turnID, CreatedAt: ident.Now()}
}

// interrupted ends the turn with what was said so far; nothing said is no reply.
func (a *attempt) interrupted(out *stream, as Status) ending {
	e := ending{status: as}
	if out.text() != "" {
		e.reply = a.reply(out)
	}
	return e
}

// rested tells of a turn that waits for a person.
func (r *Runner) rested(ctx context.Context, a *attempt, e ending) (Status, error) {
	ctx, end := outlive(ctx)
	defer end()
	r.signal("waiting")
	notify.Deliver(ctx, r.DB, r.Publish, a.tenantID, e.notices...)
	r.reply(ctx, slog.LevelWarn, a)
	for _, id := range e.next {
		r.dispatch(ctx, slog.LevelWarn, a.tenantID, id)
	}
	return Waiting, nil
}

// failure is a reason, for the tenant to read, why a turn cannot succeed.
type failure struct{ reason string }

func (f *failure) Error() string { return f.reason }

// explain is the reason that the turn record shows: never an internal error's text.
func explain(err, cause error) string {
	var f *failure
	var m *model.Error
	var g *guardrail.Error
	switch {
	case errors.Is(cause, errTooLong):
		return errTooLong.Error()
	case errors.As(err, &f):
		return f.reason
	case errors.As(err, &m):
		return m.Message
	case errors.As(err, &g):
		return g.Message
	}
	return "internal error"
}

func (r *Runner) signal(point string) {
	if r.Signal != nil {
		r.Signal(point)
	}
}
