package step

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/callback"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/guardrail"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/invoke"
	"github.com/agentplatform/agentplatform/pkg/mail"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/routine"
	"github.com/agentplatform/agentplatform/pkg/thread"
	"github.com/agentplatform/agentplatform/pkg/tool"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// Function does queued steps: it calls tools and has mails sent. Work is what it is invoked with.
const Function = "call-tool"

// Work names a queued step; the zero Work asks for a sweep.
type Work struct {
	TenantID string `json:"tenantId"`
	StepID   string `json:"stepId"`
}

const (
	claimLease  = time.Minute      // from the claim to the call
	callGrace   = 30 * time.Second // beyond a tool's own time
	mailTime    = time.Minute
	maxAttempts = 3
	sweepSize   = 500
)

// Caller does queued steps.
type Caller struct {
	DB      *postgres.DB
	Tools   tool.Registry                                    // the platform's
	Servers turn.ToolServers                                 // the tenants' tool servers; nil: none
	Guard   guardrail.Checker                                // what agents' guardrails are checked by
	Send    invoke.Function                                  // the function mail.Function; nil: this deployment sends no mail
	Ask     func(ctx context.Context, t callback.Task) error // tells the engine that a step goes on; if it does not wait for it any more, the callback is gone then
	Answer  func(ctx context.Context, t callback.Task) error // has the engine told, elsewhere and later
	Again   func(ctx context.Context, w Work) error          // has a step done, elsewhere and later
	Signal  func(point string)                               // tests: called at every point where a crash is tried; nil: none
}

// Do does one step, or, without one, has those done that nobody works on. Nothing to do is no error, and neither is a step that fails.
func (c *Caller) Do(ctx context.Context, w Work) error {
	if w.StepID == "" {
		return c.sweep(ctx)
	}
	if err := c.ask(ctx, w); err != nil {
		return err
	}
	q, err := c.claim(ctx, w)
	if err != nil || q == nil {
		return err
	}
	c.signal("step claimed")
	var o outcome
	switch {
	case q.attempts > maxAttempts:
		o = failed(ToolFailed, fmt.Sprintf("the step died %d times", maxAttempts))
	case q.verb == routine.SendMail:
		o, err = c.mail(ctx, q)
	default:
		o, err = c.tool(ctx, q)
	}
	if err != nil || o.gone {
		return err
	}
	c.signal("step done")
	return c.finish(ctx, q, o)
}

func (c *Caller) sweep(ctx context.Context) error {
	due, err := postgres.All(ctx, c.DB.Lookup(), pgx.RowToStructByPos[Work], `select tenant_id::text, step_id::text from lookup_due_routine_steps($1)`, sweepSize)
	for _, w := range due {
		err = errors.Join(err, c.Again(ctx, w))
	}
	return err
}

// queued is a step that this attempt holds.
type queued struct {
	Work
	lease      string
	runID      string
	verb       routine.Verb
	input      json.RawMessage
	agentID    *string
	callbackID string
	attempts   int  // this one included
	lost       bool // an earlier one may have done it
}

const claimable = ` where id = $1 and status in ('queued', 'running') and (lease_id is null or lease_until < clock_timestamp())`

// ask has the engine say whether it waits for the step: not any more, if the task's time was over or another attempt was begun while the step stood in
// the queue. An engine that cannot be asked leaves the step as it is, and it is no attempt.
func (c *Caller) ask(ctx context.Context, w Work) error {
	if !ident.Valid(w.TenantID) || !ident.Valid(w.StepID) {
		return fault.Invalid("the work names no step")
	}
	waits, err := postgres.All(ctx, c.DB.In(w.TenantID), pgx.RowTo[string], `select callback_id::text from routine_steps`+claimable, w.StepID)
	if err != nil || len(waits) == 0 {
		return err
	}
	return c.Ask(ctx, callback.Task{TenantID: w.TenantID, CallbackID: waits[0]})
}

// claim takes the step's lease; nil: somebody else has it, or it is over, as it is when nobody waits for it any more.
func (c *Caller) claim(ctx context.Context, w Work) (*queued, error) {
	var q *queued
	lease := ident.New()
	err := c.DB.InTenant(ctx, w.TenantID, func(tx pgx.Tx) error {
		n := queued{Work: w, lease: lease}
		err := tx.QueryRow(ctx, `update routine_steps set lease_id = $2, lease_until = clock_timestamp() + $3::interval, attempts = attempts + 1`+claimable+`
			returning run_id, verb, input, agent_id, callback_id, attempts, status = 'running'`, w.StepID, lease, claimLease).
			Scan(&n.runID, &n.verb, &n.input, &n.agentID, &n.callbackID, &n.attempts, &n.lost)
		if q = &n; errors.Is(err, pgx.ErrNoRows) {
			q, err = nil, nil
		}
		if err != nil || q == nil {
			return err
		}
		waits, err := callback.Waits(ctx, tx, q.callbackID)
		if err == nil && !waits {
			q = nil
			_, err = tx.Exec(ctx, `update routine_steps set status = 'cut', lease_id = null, lease_until = null, finished_at = $2 where id = $1`, w.StepID, ident.Now())
		}
		return err
	})
	return q, err
}

// begin notes that from now on the step may have been done; false: the step is not this attempt's any more.
func (c *Caller) begin(ctx context.Context, q *queued, within time.Duration) (held bool, err error) {
	err = c.DB.InTenant(ctx, q.TenantID, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `update routine_steps set status = 'running', lease_until = clock_timestamp() + $3::interval
			where id = $1 and lease_id = $2 and status in ('queued', 'running')`, q.StepID, q.lease, within+callGrace)
		held = tag.RowsAffected() > 0
		return err
	})
	return held, err
}

// outcome is what the engine is told.
type outcome struct {
	result    json.RawMessage
	errorType string // "": none
	reason    string
	gone      bool // the step is not this attempt's any more
}

func failed(errorType, reason string) (o outcome) {
	o.errorType, o.reason = callback.Reason(errorType, reason)
	return o
}

// read is what a verb was told; not ok: nothing that it could be told, although Begin has looked.
func read[T any](input json.RawMessage) (in T, ok bool) {
	err := json.Unmarshal(input, &in)
	return in, err == nil
}

// mail sends one, once.
func (c *Caller) mail(ctx context.Context, q *queued) (outcome, error) {
	type parameters struct {
		To      recipients `json:"to"`
		Subject string     `json:"subject"`
		Text    string     `json:"text"`
	}
	in, ok := read[parameters](q.input)
	switch {
	case !ok:
		return failed(string(fault.ValidationError), "the parameters are not those of a mail"), nil
	case q.lost:
		return failed(MailUnknown, tool.ErrEmailUnknown.Error()), nil
	case c.Send == nil:
		return failed(string(fault.ValidationError), "this deployment sends no mail"), nil
	}
	if held, err := c.begin(ctx, q, mailTime); err != nil || !held {
		return outcome{gone: true}, err
	}
	c.signal("mail asked")
	sent, err := tool.Email(ctx, c.DB, c.Send, mail.Order{TenantID: q.TenantID, To: in.To, Subject: in.Subject, Text: in.Text})
	switch {
	case errors.Is(err, tool.ErrEmailUnknown):
		slog.ErrorContext(ctx, "it is not known whether a mail was sent", "tenant_id", q.TenantID, "routine_run_id", q.runID, "step_id", q.StepID, "error", err)
		return failed(MailUnknown, tool.ErrEmailUnknown.Error()), nil
	case err != nil:
		f := fault.From(err)
		return failed(string(f.Type), f.Message), ctx.Err()
	}
	result, err := json.Marshal(sent)
	return outcome{result: result}, err
}

// recipients are one address or a list of them.
type recipients []string

// UnmarshalJSON takes a text for a list of one.
func (r *recipients) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*r = recipients{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(r))
}

// tool calls one, as the step's agent may.
func (c *Caller) tool(ctx context.Context, q *queued) (outcome, error) {
	type parameters struct {
		Tool  string          `json:"tool"`
		Input json.RawMessage `json:"input"`
	}
	in, ok := read[parameters](q.input)
	if !ok || q.agentID == nil {
		return failed(string(fault.ValidationError), "the parameters are not those of a tool's call"), nil
	}
	if len(in.Input) == 0 {
		in.Input = json.RawMessage(`{}`)
	}
	as, err := c.agent(ctx, q.TenantID, *q.agentID)
	if err != nil {
		return outcome{}, err
	}
	defer as.close()
	t, known := as.Tools[in.Tool]
	switch {
	case as.refusal != nil:
		return failed(string(as.refusal.Type), as.refusal.Message), nil
	case known && t.Granted(as.Grants) && t.Granted(as.approvals):
		return failed(ApprovalRequired, fmt.Sprintf("calls of the tool %q wait for a person's approval, which only a turn can do", in.Tool)), nil
	}
	within := t.Timeout
	if within == 0 {
		within = tool.DefaultTimeout
	}
	if held, err := c.begin(ctx, q, min(within, tool.MaxTimeout)); err != nil || !held {
		return outcome{gone: true}, err
	}
	result, asks := as.Call(ctx, in.Tool, tool.Call{TenantID: q.TenantID, AgentID: *q.agentID, ID: q.StepID, Input: in.Input}, q.lost)
	switch {
	case asks != nil:
		return failed(ApprovalRequired, fmt.Sprintf("the tool %q asks a person, which only a turn can do: wait_for_approval asks one", in.Tool)), nil
	case result.Status == thread.ToolOK:
		return outcome{result: json.RawMessage(*result.Output)}, nil
	case ctx.Err() != nil: // it was cut short: nobody knows the outcome
		return outcome{}, ctx.Err()
	}
	code := map[thread.ToolStatus]string{thread.ToolDenied: ToolDenied, thread.ToolTimeout: ToolTimeout}[result.Status]
	if code == "" {
		code = ToolFailed
	}
	return failed(code, *result.Error), nil
}

// finish writes the outcome, and what the engine is told of it, if the step is still this attempt's.
func (c *Caller) finish(ctx context.Context, q *queued, o outcome) error {
	held := false
	err := c.DB.InTenant(ctx, q.TenantID, func(tx pgx.Tx) error {
		status, code, reason := Succeeded, (*string)(nil), (*string)(nil)
		if o.errorType != "" {
			status, code, reason = Failed, &o.errorType, &o.reason
		}
		var result any
		if len(o.result) > 0 {
			result = o.result
		}
		tag, err := tx.Exec(ctx, `update routine_steps set status = $3, result = $4, error_type = $5, error = $6, finished_at = $7, lease_id = null, lease_until = null
			where id = $1 and lease_id = $2 and status in ('queued', 'running')`, q.StepID, q.lease, status, result, code, reason, ident.Now())
		if held = tag.RowsAffected() > 0; err != nil || !held {
			return err
		}
		if code != nil {
			return callback.Fail(ctx, tx, q.callbackID, *code, *reason)
		}
		return callback.Answer(ctx, tx, q.callbackID, o.result)
	})
	if err != nil || !held {
		return err
	}
	c.signal("step finished")
	if err := c.Answer(ctx, callback.Task{TenantID: q.TenantID, CallbackID: q.callbackID}); err != nil {
		slog.WarnContext(ctx, "the workflow engine is told later", "tenant_id", q.TenantID, "step_id", q.StepID, "error", err)
	}
	return nil
}

func (c *Caller) signal(point string) {
	if c.Signal != nil {
		c.Signal(point)
	}
}
