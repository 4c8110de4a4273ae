package turn

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/evaluator"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/notify"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/pkg/thread"
)

// record writes what the attempt has done so far and what it is about to do, if it still holds the turn.
func (r *Runner) record(ctx context.Context, a *attempt, finished, started []step, more ...func(b *pgx.Batch)) error {
	var b pgx.Batch
	b.Queue(`select hold_turn($1, $2)`, a.turnID, a.lease)
	for _, s := range finished {
		finishStep(&b, a.turnID, s)
	}
	for _, s := range started {
		b.Queue(`insert into turn_steps (tenant_id, turn_id, number, kind, name, status) values ($1, $2, $3, $4, $5, $6)
			on conflict (tenant_id, turn_id, number) do update set status = excluded.status, started_at = clock_timestamp()`, // approved: it waited till now
			a.tenantID, a.turnID, s.number, s.kind, s.name, s.status())
	}
	a.guard.queue(&b, a.turnID)
	for _, queue := range more {
		queue(&b)
	}
	a.prompt.queue(&b, a)
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

func finishStep(b *pgx.Batch, turnID string, s step) {
	b.Queue(`update turn_steps set status = 'finished', response = $3, finished_at = clock_timestamp() where turn_id = $1 and number = $2`,
		turnID, s.number, s.response)
}

// ending is how a turn ends.
type ending struct {
	status  Status
	reply   *thread.Message // nil: none
	last    *step           // the model call that gave the reply
	reason  *string         // of a failed turn
	said    []publish.Event // by the attempt, and not stored yet
	notices []notify.Notice // of a turn that waits, written already
	next    []string        // likewise: the turns that may start in its place
}

// feedback writes the durable record of the turn: reply, counters, record and what subscribers are told, all or nothing. It returns the ids of
// the turns that may start now: the one that waits behind this one, and those that wait for room; and the callback that is due with the turn's end, ""
// for none.
//
// The thread is locked before the turn, as Request does, so that the two cannot wait for each other.
func (r *Runner) feedback(ctx context.Context, a *attempt, e ending) (notices []notify.Notice, next []string, callback string, err error) {
	a.begin(ctx, Feedback)
	var b pgx.Batch
	if m := e.reply; m != nil {
		b.Queue(`update threads set message_count = message_count + 1, token_count = token_count + $2, updated_at = clock_timestamp() where uuid = $1`,
			a.threadUUID, m.TokenCount)
	} else {
		b.Queue(`select from threads where uuid = $1 for no key update`, a.threadUUID)
	}
	b.Queue(`select hold_turn($1, $2)`, a.turnID, a.lease)
	if m := e.reply; m != nil {
		queueReply(&b, a, *m)
	}
	if e.last != nil {
		finishStep(&b, a.turnID, *e.last)
	}
	if a.ahead > 0 { // a limit stands before the call
		b.Queue(`delete from turn_steps where turn_id = $1 and number = $2`, a.turnID, a.ahead)
	}
	a.prompt.queue(&b, a)
	a.guard.queue(&b, a.turnID)
	a.phases.end()
	var waiting *string
	a.queueUsage(&b, r.Prices)
	b.Queue(`update thread_turns set status = $2, phases = $3, tool_outcomes = $4, error = $5, lease_until = null, finished_at = $6,
			score_after = case when $8 then clock_timestamp() + $9 end where id = $1
		returning (select q.id from thread_turns q where q.thread_uuid = $7 and q.status = 'queued'), coalesce(callback_id::text, '')`,
		a.turnID, e.status, a.phases, orEmpty(a.outcomes), e.reason, a.phases[len(a.phases)-1].FinishedAt, a.threadUUID,
		a.agent.rated && e.status == Succeeded, evaluator.ScoreGrace).QueryRow(func(row pgx.Row) error { return row.Scan(&waiting, &callback) })
	queueRoom(&b, &next)
	notices = append(notices, notify.QueueTurn(&b, a.tenantID, a.threadUUID, a.turnID, a.told(e)...))
	err = r.DB.Once(ctx, a.tenantID, &b)
	if waiting != nil {
		next = append(next, *waiting)
	}
	return notices, next, callback, err
}

// queueUsage writes what the turn has used so far, all in all, and what that costs.
func (a *attempt) queueUsage(b *pgx.Batch, prices model.Prices) {
	var cost *int64
	if micros, known := prices.Cost(a.agent.modelID, a.usage, ident.Now().Time); known {
		cost = &micros
	}
	u := a.usage
	b.Queue(`update thread_turns set model = $2, input_tokens = $3, output_tokens = $4, cache_read_tokens = $5, cache_write_tokens = $6, cost_micros = $7 where id = $1`,
		a.turnID, a.agent.modelID, u.InputTokens+u.CacheReadTokens+u.CacheWriteTokens, u.OutputTokens, u.CacheReadTokens, u.CacheWriteTokens, cost)
}

// queueReply adds what the turn says behind the thread's other messages, whose count is this one's already.
func queueReply(b *pgx.Batch, a *attempt, m thread.Message) {
	b.Queue(`insert into messages (tenant_id, id, thread_uuid, position, role, body, tool_calls, tool_results, token_count, model, turn_id, turn_number, part, created_at)
		select t.tenant_id, $2, t.uuid, t.message_count, 'assistant', $3, $4, $5, $6, $7, r.id, r.number, $8, $9
		from threads t, thread_turns r where t.uuid = $1 and r.id = $10`,
		a.threadUUID, m.ID, m.Body, m.ToolCalls, m.ToolResults, m.TokenCount, m.Model, a.said.parts, m.CreatedAt, a.turnID)
}

// told is what subscribers are told of the end.
func (a *attempt) told(e ending) []publish.Event {
	events := e.said
	if e.reply != nil {
		events = append(events, newMessage(a.tenantID, *e.reply))
	}
	if e.status == Failed {
		return append(events, a.activity(publish.Failed, *e.reason)...)
	}
	return append(events, a.activity(publish.Idle, "")...)
}

func newMessage(tenantID string, m thread.Message) publish.NewMessage {
	p := publish.Message{ID: m.ID, ThreadID: m.ThreadID, Role: string(m.Role), Body: m.Body, TokenCount: &m.TokenCount, Model: m.Model, TurnID: m.TurnID, Metadata: m.Metadata, CreatedAt: m.CreatedAt}
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
