package turn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/notify"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/pkg/thread"
	"github.com/agentplatform/agentplatform/pkg/tool"
)

// Dispatch is the payload that starts a queued turn.
type Dispatch struct {
	TenantID  string   `json:"tenantId"`
	TurnID    string   `json:"turnId"`
	Published []string `json:"published,omitempty"` // notices that the sender has published: the claim deletes them along the way
}

// DefaultRuntime is the runtime selector of the runtime in this package.
const DefaultRuntime = "default"

// Runner runs turns.
type Runner struct {
	DB       *postgres.DB
	Model    model.Model
	Publish  publish.Publisher
	Prices   model.Prices
	Tools    tool.Registry
	Dispatch func(ctx context.Context, tenantID, turnID string) error // starts a queued turn, elsewhere and later
	Signal   func(point string)                                       // tests: called at every point where a crash is tried; nil: none
}

// Why an attempt is cut short; both are causes of its context.
var (
	errInterrupted = errors.New("turn: a later message interrupted the turn")
	errLeaseLost   = errors.New("turn: another attempt took over")
	errTooLong     = fmt.Errorf("the turn took longer than %s", maxDuration)
)

// Run takes a queued turn, or one whose attempt died, to its end. Nothing to do is not an error. An error means that the turn goes on
// later, by whoever takes its lease; a turn that fails for good is recorded as failed and is not an error.
func (r *Runner) Run(ctx context.Context, d Dispatch) error {
	tenantID, turnID := d.TenantID, d.TurnID
	a, err := r.perceive(ctx, d)
	if errors.Is(err, errNotDue) {
		return nil
	}
	if err != nil {
		return err
	}
	r.signal("claimed")

	work, cancel := context.WithTimeoutCause(ctx, maxDuration, errTooLong)
	defer cancel()
	work, held := r.hold(work, a)
	defer held()
	out := newStream(ctx, r.Publish, a)
	defer out.close()

	e, err := r.converse(work, a, out)
	if err != nil {
		cause := context.Cause(work)
		switch {
		case ctx.Err() != nil, errors.Is(cause, errLeaseLost), errors.Is(err, errLeaseLost), isLeaseLost(err):
			return nil // the process stops, or another attempt has the turn: it goes on there
		case cause == nil && errors.As(err, new(unwritten)):
			return err
		case errors.Is(cause, errInterrupted):
			e = a.interrupted(out)
		default:
			reason := explain(err, cause)
			slog.ErrorContext(ctx, "turn failed", "tenant_id", tenantID, "turn_id", turnID, "error", err, "cause", errors.Unwrap(err))
			e = ending{status: Failed, reason: &reason}
		}
	}
	held()
	if e.reply != nil {
		out.finish()
	}
	r.signal("reply made")
	notices, next, err := r.feedback(ctx, a, e)
	if isLeaseLost(err) {
		return nil
	}
	if err != nil {
		return err
	}
	r.signal("committed")
	notify.Deliver(ctx, r.DB, r.Publish, tenantID, notices...)
	if e.status == Failed {
		out.status(publish.Failed, *e.reason)
	} else {
		out.status(publish.Idle, "")
	}
	out.close()
	r.signal("published")
	if next != "" {
		if err := r.Dispatch(ctx, tenantID, next); err != nil {
			slog.WarnContext(ctx, "dispatch failed; the reaper tries again", "tenant_id", tenantID, "turn_id", next, "error", err)
		}
	}
	return nil
}

// converse alternates planning and action until the model has answered.
func (r *Runner) converse(ctx context.Context, a *attempt, out *stream) (ending, error) {
	if a.number > maxAttempts {
		a.recount()
		return ending{}, &failure{fmt.Sprintf("the turn died %d times", maxAttempts)}
	}
	if a.number == 1 && !a.agent.status.TakesTurns() {
		return ending{}, &failure{fmt.Sprintf("the agent is %s and takes no turns", a.agent.status)}
	}
	if a.agent.runtime != DefaultRuntime {
		return ending{}, &failure{fmt.Sprintf("the runtime %q is not part of this deployment", a.agent.runtime)}
	}
	for range maxModelCalls {
		response, s, err := r.plan(ctx, a, out)
		if err != nil {
			return ending{}, err
		}
		uses := response.ToolUses()
		if len(uses) == 0 {
			r.signal("answered")
			a.phases.begin(Action)
			return ending{status: Succeeded, reply: a.reply(out), last: s}, nil
		}
		if len(a.calls)+len(uses) > maxToolCalls {
			return ending{}, &failure{fmt.Sprintf("the turn asked for more than %d tool calls", maxToolCalls)}
		}
		if err := r.act(ctx, a, out, s, uses); err != nil {
			return ending{}, err
		}
		out.paragraph()
	}
	return ending{}, &failure{fmt.Sprintf("the turn asked for more than %d model calls", maxModelCalls)}
}

// reply is the assistant message that the turn writes: what was streamed, to the byte.
func (a *attempt) reply(out *stream) *thread.Message {
	body := out.text()
	return &thread.Message{ID: out.messageID(), ThreadID: a.threadID, Role: thread.Assistant, Body: body, ToolCalls: a.calls, ToolResults: a.outcomes,
		TokenCount: thread.EstimateTokens(body), Model: &a.agent.modelID, TurnID: &a.turnID, CreatedAt: ident.Now()}
}

// interrupted ends the turn with what was said so far; nothing said is no reply.
func (a *attempt) interrupted(out *stream) ending {
	e := ending{status: Interrupted}
	if out.text() != "" {
		e.reply = a.reply(out)
	}
	return e
}

// failure is a reason, for the tenant to read, why a turn cannot succeed.
type failure struct{ reason string }

func (f *failure) Error() string { return f.reason }

// explain is the reason that the turn record shows: never an internal error's text.
func explain(err, cause error) string {
	var f *failure
	var m *model.Error
	switch {
	case errors.Is(cause, errTooLong):
		return errTooLong.Error()
	case errors.As(err, &f):
		return f.reason
	case errors.As(err, &m):
		return m.Message
	}
	return "internal error"
}

func (r *Runner) signal(point string) {
	if r.Signal != nil {
		r.Signal(point)
	}
}
