package turn

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/notify"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/pkg/thread"
)

// WaitsFor is what a waiting turn needs of a person.
type WaitsFor string

const (
	Answer   WaitsFor = "answer"   // to the agent's question: the next message of the thread
	Approval WaitsFor = "approval" // of calls of tools
)

// stop is a turn that cannot go on without a person.
type stop struct {
	waitsFor WaitsFor
	question string
	planned  int         // the number of the model call that led here
	calls    []*toolCall // of its answer
	asking   *toolCall   // of these, the one whose result the person's answer is
	finished []step      // of the others, not yet written
}

// oneAtATime is what a question is told that cannot be put now.
const oneAtATime = "not asked: ask one question at a time, and none beside calls that wait for approval"

// stopFor is what the calls wait for; nil: nothing. Approvals come first, and one question is asked at a time: other questions have failed, for the
// model to ask again.
func stopFor(planned *step, calls []*toolCall, finished []step) *stop {
	s := stop{planned: planned.number, calls: calls, finished: finished}
	for _, c := range calls {
		if c.step.waiting {
			s.waitsFor = Approval
		}
	}
	for _, c := range calls {
		switch {
		case c.asks == nil:
		case s.waitsFor == "":
			s.waitsFor, s.question, s.asking = Answer, c.asks.Question, c
		default:
			why := oneAtATime
			c.settle(thread.ToolResult{Status: thread.ToolError, Error: &why})
			s.finished = append(s.finished, *c.step)
		}
	}
	if s.waitsFor == "" {
		return nil
	}
	return &s
}

// settle gives a call that asked its outcome.
func (c *toolCall) settle(result thread.ToolResult) {
	result.ToolCallID, result.Name = c.use.ID, c.use.Name
	c.result, c.asks, c.fresh = result, nil, true
	c.step.response, _ = json.Marshal(result) // strings and numbers only
	c.step.waiting, c.step.finished = false, true
}

// errWritten says that the person has written before the question was put.
var errWritten = errors.New("turn: a message waits")

// stop ends the attempt where the turn waits for a person; false when it need not wait.
func (r *Runner) stop(ctx context.Context, a *attempt, out *stream, s *stop) (ending, bool, error) {
	if s.question != "" {
		question, err := a.guard.passText(ctx, s.question)
		if err != nil {
			return ending{}, false, err
		}
		out.paragraph()
		out.Text(question)
		out.keep()
	}
	var part *thread.Message
	if out.text() != "" {
		part = a.reply(out)
	}
	said := out.finish(part != nil)
	if part != nil {
		part.ID = out.messageID()
	}
	notices, next, err := r.rest(ctx, a, s, part, said)
	if errors.Is(err, errWritten) {
		out.unfinish(said)
		return ending{}, false, r.answered(ctx, a, s)
	}
	return ending{status: Waiting, notices: notices, next: next}, true, err
}

// rest writes that the turn waits, with what it has said, and gives up its lease: all or nothing. errWritten when a question has an answer already, or
// what may be one.
//
// The thread is locked before the turn, as Request does.
func (r *Runner) rest(ctx context.Context, a *attempt, s *stop, part *thread.Message, said []publish.Event) (notices []notify.Notice, next []string, err error) {
	a.phases.end()
	err = r.DB.InTenant(ctx, a.tenantID, func(tx pgx.Tx) error {
		told := slices.Clone(said)
		var th publish.Thread
		var queued bool
		err := tx.QueryRow(ctx, `select status, title, metadata::text, exists (select from thread_turns q where q.thread_uuid = uuid and q.status = 'queued')
			from threads where uuid = $1 for no key update`, a.threadUUID).Scan(&th.Status, &th.Title, &th.Metadata, &queued)
		if err != nil {
			return err
		}
		if s.waitsFor == Answer && queued {
			return errWritten
		}
		var b pgx.Batch
		b.Queue(`select hold_turn($1, $2)`, a.turnID, a.lease)
		if part != nil {
			b.Queue(`update threads set message_count = message_count + 1, token_count = token_count + $2 where uuid = $1`, a.threadUUID, part.TokenCount)
			queueReply(&b, a, *part)
			told = append(told, newMessage(a.tenantID, *part))
		}
		a.guard.queue(&b, a.turnID)
		a.queueUsage(&b, r.Prices) // a person may end the turn while it waits
		for _, done := range s.finished {
			finishStep(&b, a.turnID, done)
		}
		if s.asking != nil {
			b.Queue(`update turn_steps set status = 'waiting', response = $3 where turn_id = $1 and number = $2`, a.turnID, s.asking.step.number,
				thread.ToolResult{ToolCallID: s.asking.use.ID, Name: s.asking.use.Name}) // what the answer completes
		}
		var until any // a question waits for ever
		if s.waitsFor == Approval {
			until = approvalTime
		}
		b.Queue(`update thread_turns set status = 'waiting', waits_for = $2, said_steps = $3, attempts = attempts - 1, phases = $4, tool_outcomes = $5,
			lease_id = null, lease_until = clock_timestamp() + $6 where id = $1`, a.turnID, s.waitsFor, s.planned, a.phases, orEmpty(a.outcomes), until)
		if th.Status == string(thread.Open) {
			th.ID, th.Status, th.UpdatedAt = a.threadID, string(thread.Waiting), ident.Now()
			b.Queue(`update threads set status = 'waiting', updated_at = greatest(updated_at, $2) where uuid = $1`, a.threadUUID, th.UpdatedAt)
			told = append(told, publish.ThreadUpdate{TenantID: a.tenantID, ThreadID: a.threadID, Thread: th})
		}
		told = append(told, a.activity(publish.Idle, "waiting for a person")...)
		queueRoom(&b, &next)
		notices = []notify.Notice{notify.QueueTurn(&b, a.tenantID, a.threadUUID, a.turnID, told...)}
		return tx.SendBatch(ctx, &b).Close()
	})
	return notices, next, err
}

// answered lets a question's turn go on although nobody was asked: a message that came before the question waits in the thread.
func (r *Runner) answered(ctx context.Context, a *attempt, s *stop) error {
	why := "not asked: the person has written meanwhile. The message comes after this turn; ask again then if it does not answer your question"
	s.asking.settle(thread.ToolResult{Status: thread.ToolError, Error: &why})
	return r.acted(ctx, a, s.calls, append(s.finished, *s.asking.step))
}
