package turn

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/notify"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/pkg/thread"
)

// record writes what the attempt has done so far and what it is about to do, if it still holds the turn.
func (r *Runner) record(ctx context.Context, a *attempt, finished, started []step) error {
	var b pgx.Batch
	b.Queue(`select hold_turn($1, $2)`, a.turnID, a.lease)
	for _, s := range finished {
		finishStep(&b, a, s)
	}
	for _, s := range started {
		b.Queue(`insert into turn_steps (tenant_id, turn_id, number, kind, name) values ($1, $2, $3, $4, $5)`, a.tenantID, a.turnID, s.number, s.kind, s.name)
	}
	b.Queue(`update thread_turns set phases = $2, tool_outcomes = $3, lease_until = clock_timestamp() + $4 where id = $1`,
		a.turnID, a.phases, orEmpty(a.outcomes), Lease)
	if err := r.DB.Once(ctx, a.tenantID, &b); err != nil {
		return unwritten{err}
	}
	return nil
}

// unwritten says that the database did not take what an attempt did: the turn is not over, it goes on in another attempt.
type unwritten struct{ error }

func (u unwritten) Unwrap() error { return u.error }

func finishStep(b *pgx.Batch, a *attempt, s step) {
	b.Queue(`update turn_steps set status = 'finished', response = $3, finished_at = clock_timestamp() where turn_id = $1 and number = $2`,
		a.turnID, s.number, s.response)
}

// ending is how a turn ends.
type ending struct {
	status Status
	reply  *thread.Message // nil: none
	last   *step           // the model call that gave the reply
	reason *string         // of a failed turn
}

// feedback writes the durable record of the turn: reply, counters, record and the request to notify, all or nothing. It returns the id of
// the turn that waits behind this one, if any.
//
// The thread is locked before the turn, as Request does, so that the two cannot wait for each other.
func (r *Runner) feedback(ctx context.Context, a *attempt, e ending) (notices []notify.Notice, next string, err error) {
	a.phases.begin(Feedback)
	var b pgx.Batch
	if m := e.reply; m != nil {
		b.Queue(`update threads set message_count = message_count + 1, token_count = token_count + $2, updated_at = clock_timestamp() where uuid = $1`,
			a.threadUUID, m.TokenCount)
	} else {
		b.Queue(`select from threads where uuid = $1 for no key update`, a.threadUUID)
	}
	b.Queue(`select hold_turn($1, $2)`, a.turnID, a.lease)
	if m := e.reply; m != nil {
		b.Queue(`insert into messages (tenant_id, id, thread_uuid, position, role, body, tool_calls, tool_results, token_count, model, turn_id, turn_number, created_at)
			select t.tenant_id, $2, t.uuid, t.message_count, 'assistant', $3, $4, $5, $6, $7, r.id, r.number, $8
			from threads t, thread_turns r where t.uuid = $1 and r.id = $9`,
			a.threadUUID, m.ID, m.Body, m.ToolCalls, m.ToolResults, m.TokenCount, m.Model, m.CreatedAt, a.turnID)
		notices = append(notices, notify.Queue(&b, a.tenantID, newMessage(a.tenantID, *m)))
	}
	if e.last != nil {
		finishStep(&b, a, *e.last)
	}
	var cost *int64
	if micros, known := r.Prices.Cost(a.agent.modelID, a.usage, ident.Now().Time); known {
		cost = &micros
	}
	a.phases.end()
	var waiting *string
	b.Queue(`update thread_turns set status = $2, phases = $3, model = $4, input_tokens = $5, output_tokens = $6, cost_micros = $7, tool_outcomes = $8,
			error = $9, lease_until = null, finished_at = $10 where id = $1
		returning (select q.id from thread_turns q where q.thread_uuid = $11 and q.status = 'queued')`,
		a.turnID, e.status, a.phases, a.agent.modelID, a.usage.InputTokens+a.usage.CacheReadTokens+a.usage.CacheWriteTokens, a.usage.OutputTokens, cost,
		orEmpty(a.outcomes), e.reason, a.phases[len(a.phases)-1].FinishedAt, a.threadUUID).QueryRow(func(row pgx.Row) error { return row.Scan(&waiting) })
	if err = r.DB.Once(ctx, a.tenantID, &b); err == nil && waiting != nil {
		next = *waiting
	}
	return notices, next, err
}

func newMessage(tenantID string, m thread.Message) publish.NewMessage {
	p := publish.Message{ID: m.ID, ThreadID: m.ThreadID, Role: string(m.Role), Body: m.Body, TokenCount: &m.TokenCount, Model: m.Model, TurnID: m.TurnID, CreatedAt: m.CreatedAt}
	for _, c := range m.ToolCalls {
		p.ToolCalls = append(p.ToolCalls, publish.ToolCall(c))
	}
	for _, t := range m.ToolResults {
		p.ToolResults = append(p.ToolResults, publish.ToolResult{ToolCallID: t.ToolCallID, Name: t.Name, Status: string(t.Status),
			Output: t.Output, Error: t.Error, DurationMs: int(t.DurationMs)})
	}
	return publish.NewMessage{TenantID: tenantID, ThreadID: m.ThreadID, Message: p}
}

// orEmpty keeps an absent list from becoming a JSON null.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
