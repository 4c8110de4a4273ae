package turn

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/agent"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/notify"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/thread"
)

// errNotDue says that there is nothing to run: the turn is done, is run by another attempt, or waits for the thread's running turn.
var errNotDue = errors.New("turn: not due")

// attempt is one claimed turn on its way through the phases.
type attempt struct {
	tenantID   string
	turnID     string
	lease      string
	number     int  // of attempts, this one included and those that handed the turn back not
	begun      bool // by an earlier attempt
	threadUUID string
	threadID   string // public
	agentID    string
	agent      agentContext
	phases     phases
	journal    journal
	history    []model.Message
	payloads   bool // there are some in the history
	outcomes   []thread.ToolResult
	calls      []thread.ToolCall
	usage      model.Usage
	left       []step // finished, and not yet written when the process stopped
}

// agentContext is what the turn's agent brings, its template's fields where it sets none.
type agentContext struct {
	name         string
	status       agent.Status
	systemPrompt *string
	modelID      string
	runtime      string
	tools        []string
}

// perceive claims the turn and assembles its context, in one transaction and one round trip: the claim, the agent, the thread's history
// up to this turn, the steps of earlier attempts, and the first step if there is none. A turn is claimed when it is queued and its thread
// is idle, or when its lease ran out.
func (r *Runner) perceive(ctx context.Context, d Dispatch) (*attempt, error) {
	tenantID, turnID := d.TenantID, d.TurnID
	a := &attempt{tenantID: tenantID, turnID: turnID, lease: ident.New()}
	a.phases.begin(Perception)
	var earlier phases
	var b pgx.Batch
	claimed := false
	b.Queue(`with claimed as (
			update thread_turns t set status = 'running', attempts = attempts + 1, lease_id = $2, lease_until = clock_timestamp() + $3,
				started_at = coalesce(started_at, $4)
			where id = $1 and (status = 'queued' or status = 'running' and lease_until < clock_timestamp())
				and (select count(*) from thread_turns r where r.thread_uuid = t.thread_uuid and r.status = 'running' and r.id <> t.id) = 0
			returning *),
		context as (
			select c.tenant_id, c.id, c.thread_uuid, c.agent_id, c.attempts, c.phases, th.prefix, th.number, a.name, a.status,
				coalesce(a.system_prompt, tp.system_prompt) as system_prompt, tp.model_id, tp.runtime, tp.tools
			from claimed c join threads th on th.tenant_id = c.tenant_id and th.uuid = c.thread_uuid
				join agents a on a.tenant_id = c.tenant_id and a.id = c.agent_id
				join agent_templates tp on tp.tenant_id = a.tenant_id and tp.id = a.template_id),
		started as (
			insert into turn_steps (tenant_id, turn_id, number, kind, name) select tenant_id, id, 1, 'model', model_id from context on conflict do nothing)
		select thread_uuid, agent_id, attempts, phases, prefix, number, name, status, system_prompt, model_id, runtime, tools from context`,
		turnID, a.lease, Lease, a.phases[0].StartedAt).Query(func(rows pgx.Rows) error {
		claimed = false // the batch may be run again
		var public ident.Thread
		_, err := pgx.ForEachRow(rows, []any{&a.threadUUID, &a.agentID, &a.number, &earlier, &public.Prefix, &public.Number,
			&a.agent.name, &a.agent.status, &a.agent.systemPrompt, &a.agent.modelID, &a.agent.runtime, &a.agent.tools}, func() error {
			claimed = true
			a.threadID = public.String()
			return nil
		})
		return err
	})
	a.queueHistory(&b)
	a.journal.queue(&b, turnID)
	notify.Delete(&b, d.Published)

	err := r.DB.Once(ctx, tenantID, &b)
	if postgres.IsUnique(err, "thread_turns_running") || err == nil && !claimed {
		return nil, errNotDue
	}
	a.begun = a.number > 1 || len(earlier) > 0
	earlier.end() // the phase in which an earlier attempt died
	a.phases = slices.Concat(earlier, a.phases)
	return a, err
}

// queueHistory asks for the conversation as this turn must see it: turn by turn, so that a message which arrived while an earlier turn
// ran comes behind that turn's reply; nothing of later turns; the newest messages that fit the token budget, and the newest in any case.
// A message that no user sent is a webhook's: what came with its call goes along, and is in the message's tokens.
func (a *attempt) queueHistory(b *pgx.Batch) {
	b.Queue(`select role, body, case when user_id is null and role = 'user' then (select r.context_snapshot from thread_turns r where r.id = m.turn_id) end from (
			select m.*, sum(token_count) over (order by position desc) as tokens from (
				select role, body, token_count, position, turn_number, turn_id, user_id from messages
				where thread_uuid = (select thread_uuid from thread_turns where id = $1)
					and role in ('user', 'assistant') and (turn_number is null or turn_number <= (select number from thread_turns where id = $1))
				order by position desc limit $2) m) m
		where tokens <= $3 or tokens = token_count order by turn_number nulls first, position`, a.turnID, historyLength, historyTokens).Query(func(rows pgx.Rows) error {
		a.history, a.payloads = a.history[:0], false
		var role thread.Role
		var body string
		var payload []byte
		_, err := pgx.ForEachRow(rows, []any{&role, &body, &payload}, func() error {
			// A conversation begins with the user; a budget may have cut between a question and its answer.
			if len(a.history) == 0 && role != thread.User {
				return nil
			}
			said := model.Message{Role: model.Role(role), Blocks: []model.Block{{Text: body}}}
			if payload != nil {
				said.Blocks = []model.Block{{Text: besidePayload(body)}, {Text: payloadBlock(payload)}}
				a.payloads = true
			}
			a.history = append(a.history, said)
			return nil
		})
		return err
	})
}

// step is one model call or tool call.
type step struct {
	number   int
	kind     stepKind
	name     string
	finished bool
	response json.RawMessage
}

type stepKind string

const (
	modelStep stepKind = "model"
	toolStep  stepKind = "tool"
)

// recount takes what earlier attempts finished into the record of a turn that does not go on.
func (a *attempt) recount() {
	for _, s := range a.journal.steps {
		var answer model.Response
		var outcome thread.ToolResult
		switch {
		case !s.finished:
		case s.kind == modelStep && json.Unmarshal(s.response, &answer) == nil:
			a.usage = a.usage.Add(answer.Usage)
		case s.kind == toolStep && json.Unmarshal(s.response, &outcome) == nil:
			a.outcomes = append(a.outcomes, outcome)
		}
	}
}

// journal is the turn's steps: those that earlier attempts left, then this one's.
type journal struct {
	steps []step
	next  int // index of the step to take now
}

func (j *journal) queue(b *pgx.Batch, turnID string) {
	b.Queue(`select number, kind, name, status = 'finished', response from turn_steps where turn_id = $1 order by number`, turnID).Query(func(rows pgx.Rows) error {
		j.steps = j.steps[:0]
		var s step
		_, err := pgx.ForEachRow(rows, []any{&s.number, &s.kind, &s.name, &s.finished, &s.response}, func() error {
			j.steps = append(j.steps, s)
			s.response = nil
			return nil
		})
		return err
	})
}

// take is the next step, which is there already: every step is written before it is taken.
func (j *journal) take() *step {
	s := &j.steps[j.next]
	j.next++
	return s
}

// plan adds steps behind the taken ones unless an earlier attempt wrote them; what it returns must be written.
func (j *journal) plan(kind stepKind, names ...string) []step {
	if j.next < len(j.steps) {
		return nil
	}
	var added []step
	for _, name := range names {
		added = append(added, step{number: len(j.steps) + len(added) + 1, kind: kind, name: name})
	}
	j.steps = append(j.steps, added...)
	return added
}
