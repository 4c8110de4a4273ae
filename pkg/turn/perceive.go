package turn

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/agent"
	"github.com/agentplatform/agentplatform/pkg/guardrail/store"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/notify"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/thread"
	"github.com/agentplatform/agentplatform/pkg/tool"
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
	expired    bool // it waited for a person, who did not come
	threadUUID string
	threadID   string // public
	agentID    string
	agent      agentContext
	phases     phases
	journal    journal
	ahead      int       // the number of a model call's step that is written, while the call is not made; 0: none
	lines      []line    // what the conversation is made of
	summary    *summary  // of what was said before; nil: none
	uncovered  uncovered // by it
	history    []model.Message
	payloads   bool            // there are some in the history
	events     bool            // of a task, likewise
	task       json.RawMessage // of a task tracker, that the thread is about, as it is now; nil: none
	outside    bool            // the conversation is outside: what is said here is posted there
	prompt     prompt
	guard      guard
	tools      tool.Registry // the platform's, and those that servers bring
	offer      tool.Offer    // nil: no servers
	outcomes   []thread.ToolResult
	calls      []thread.ToolCall
	usage      model.Usage
	left       []step // finished, and not yet written when the process stopped
	said       said
	approvals  map[int]decision // by the number of the call's step
	seen       seen
	broken     error // why the turn cannot go on as its agent wants
}

// said is what the turn's earlier messages hold, where it stopped for a person: its next one says only what is new.
type said struct {
	parts    int // messages
	steps    int // up to this step
	calls    int
	outcomes int
}

// agentContext is what the turn's agent brings, its template's fields where it sets none.
type agentContext struct {
	name         string
	status       agent.Status
	systemPrompt *string
	modelID      string
	runtime      string
	tools        []string // grants
	approvals    []string // of the granted ones, those whose calls a person approves
	rated        bool     // by evaluators, when the turn has succeeded
}

// perceive claims the turn and assembles its context, in one transaction and one round trip: the claim, the agent, the thread's history
// up to this turn, the steps of earlier attempts, and the first step if there is none. A turn is claimed when it is queued and its thread
// is idle and its tenant has room for one more, or when its lease ran out.
func (r *Runner) perceive(ctx context.Context, d Dispatch) (*attempt, error) {
	tenantID, turnID := d.TenantID, d.TurnID
	a := &attempt{tenantID: tenantID, turnID: turnID, lease: ident.New()}
	a.phases.begin(Perception)
	var earlier phases
	var b pgx.Batch
	claimed := false
	b.Queue(`with claimed as (
			update thread_turns t set status = 'running', attempts = attempts + 1, lease_id = $2, lease_until = clock_timestamp() + $3,
				started_at = coalesce(started_at, greatest($4, -- the turn before may have ended since this claim was asked for
					(select o.finished_at from thread_turns o where o.thread_uuid = t.thread_uuid and o.number = t.number - 1))), put_off = false
			where id = $1 and (status = 'queued' and `+turnsAtWork+` < `+turnsAtOnce+` or status in ('running', 'waiting') and lease_until < clock_timestamp())
				and (select count(*) from thread_turns r where r.thread_uuid = t.thread_uuid and r.status in ('running', 'waiting') and r.id <> t.id) = 0
			returning *, (select o.status from thread_turns o where o.id = $1) as found), -- as it was
		context as (
			select c.tenant_id, c.id, c.thread_uuid, c.agent_id, c.attempts, c.phases, c.found = 'waiting' as expired, c.said_steps, th.prefix, th.number,
				a.name, a.status, coalesce(a.system_prompt, tp.system_prompt) as system_prompt, coalesce(a.model_id, tp.model_id) as model_id,
				coalesce(a.runtime, tp.runtime) as runtime, coalesce(a.tools, tp.tools) as tools,
				coalesce(a.approvals, tp.approvals) as approvals, has_evaluators(a.evaluators, tp.evaluators) as rated, c.guardrail_decisions,
				case when th.channel = 'TASK' then th.metadata #> '{external,latestEnvelope}' end as task,
				(select true from integration_threads x where x.thread_uuid = c.thread_uuid) as outside
			from claimed c join threads th on th.tenant_id = c.tenant_id and th.uuid = c.thread_uuid
				join agents a on a.tenant_id = c.tenant_id and a.id = c.agent_id
				join agent_templates tp on tp.tenant_id = a.tenant_id and tp.id = a.template_id),
		started as (
			insert into turn_steps (tenant_id, turn_id, number, kind, name) select tenant_id, id, 1, 'model', model_id from context on conflict do nothing)
		select thread_uuid, agent_id, attempts, phases, expired, said_steps, prefix, number, name, status, system_prompt, model_id, runtime, tools, approvals, rated, guardrail_decisions,
			task, coalesce(outside, false), (select count(*) from messages m where m.turn_id = $1 and m.role = 'assistant') from context`,
		turnID, a.lease, Lease, a.phases[0].StartedAt).Query(func(rows pgx.Rows) error {
		claimed = false // the batch may be run again
		var public ident.Thread
		_, err := pgx.ForEachRow(rows, []any{&a.threadUUID, &a.agentID, &a.number, &earlier, &a.expired, &a.said.steps, &public.Prefix, &public.Number,
			&a.agent.name, &a.agent.status, &a.agent.systemPrompt, &a.agent.modelID, &a.agent.runtime, &a.agent.tools, &a.agent.approvals, &a.agent.rated, &a.guard.decisions,
			&a.task, &a.outside, &a.said.parts}, func() error {
			claimed = true
			a.threadID = public.String()
			return nil
		})
		return err
	})
	a.queueHistory(&b)
	a.journal.queue(&b, turnID)
	a.queueDecisions(&b)
	if r.Servers != nil {
		a.offer = r.Servers.Queue(&b, tenantID, `select coalesce(a.tools, tp.tools) from thread_turns t join agents a on a.tenant_id = t.tenant_id and a.id = t.agent_id
			join agent_templates tp on tp.tenant_id = a.tenant_id and tp.id = a.template_id where t.id = $1`, turnID)
	}
	var rules store.Loaded
	store.Queue(&b, turnID, &rules)
	notify.Settle(&b, d.Published)

	err := r.DB.Once(ctx, tenantID, &b)
	if postgres.IsUnique(err, "thread_turns_running") || err == nil && !claimed {
		return nil, errNotDue
	}
	a.tools = r.Tools
	if a.offer != nil {
		a.tools = r.Tools.With(a.offer.Tools())
	}
	a.guard.checker, a.guard.written = r.Guard, len(a.guard.decisions)
	if a.guard.rules, a.broken = rules.Ready(); a.broken != nil {
		a.guard.rules = nil // the turn ends before anything could be checked
	}
	a.begun = a.number > 1 || len(earlier) > 0
	earlier.end() // the phase in which an earlier attempt died
	a.phases = slices.Concat(earlier, a.phases)
	return a, err
}

// queueHistory asks for the conversation as this turn must see it: turn by turn, so that a message which arrived while an earlier turn
// ran comes behind that turn's reply; nothing of later turns; the newest messages that fit the token budget, and the newest in any case.
// A message that no user sent may be a webhook's: what came with its call goes along, and is in the message's tokens. What the platform has said, of a task
// outside, stands behind what was said before it.
//
// Messages that the thread's newest summary covers are not asked for; an attempt that goes on with a turn has the summary that the turn began with.
// One statement reads both: so no message falls between them, whoever writes a summary meanwhile.
// (coalesce stands within the subquery: outside it the comparison would not go below the policy, and the index would give all of the thread.)
func (a *attempt) queueHistory(b *pgx.Batch) {
	b.Queue(`with t as (select thread_uuid, number, retry_of, prompt from thread_turns where id = $1),
			s as (select through_position, token_count, body from thread_summaries where thread_uuid = (select thread_uuid from t)
				and ((select prompt from t) is null or through_position = (select (prompt->>'summary')::integer from t)) order by through_position desc limit 1)
		select `+lineColumns+`, messages, uncovered, case when newest then (select through_position from s) end, case when newest then (select body from s) end from (
			select m.*, sum(token_count) over (order by position desc) as tokens, row_number() over (order by position desc) = 1 as newest,
				count(*) over () as messages, sum(token_count) over () as uncovered,
				coalesce(turn_number, max(turn_number) over (order by position)) as behind from (
				select role, body, model_body, checked, token_count, position, turn_number, turn_id, user_id, tool_call_id from messages
				where thread_uuid = (select thread_uuid from t) and position > (select coalesce(max(through_position), 0) from s)
					and role in ('user', 'assistant', 'system') and (turn_number is null or turn_number <= (select number from t))
					and (turn_id is distinct from $1 or role = 'user') -- what came of the turn itself is in its steps
					and (role <> 'assistant' or turn_id is distinct from (select retry_of from t))
				order by position desc limit $2) m) m
		where tokens <= $3 - coalesce((select token_count from s), 0) or newest order by behind nulls first, position`,
		a.turnID, historyLength, historyTokens).Query(func(rows pgx.Rows) error {
		a.summary, a.uncovered = nil, uncovered{} // the batch may be run again
		lines, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (line, error) {
			var through *int
			var body *string
			l, err := scanLineWith(row, &a.uncovered.messages, &a.uncovered.tokens, &through, &body)
			if through != nil {
				a.summary = &summary{through: *through, body: *body}
			}
			return l, err
		})
		a.lines = lines
		a.assemble()
		return err
	})
}

// step is one model call or tool call.
type step struct {
	number   int
	kind     stepKind
	name     string
	waiting  bool // for a person: it has not started
	finished bool
	response json.RawMessage
}

// status is how far an unfinished step is.
func (s step) status() string {
	if s.waiting {
		return "waiting"
	}
	return "started"
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
	b.Queue(`select number, kind, name, status = 'waiting', status = 'finished', response from turn_steps where turn_id = $1 order by number`, turnID).Query(func(rows pgx.Rows) error {
		j.steps = j.steps[:0]
		var s step
		_, err := pgx.ForEachRow(rows, []any{&s.number, &s.kind, &s.name, &s.waiting, &s.finished, &s.response}, func() error {
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
		added = append(added, *j.add(kind, name))
	}
	return added
}

// add adds a step behind the others.
func (j *journal) add(kind stepKind, name string) *step {
	j.steps = append(j.steps, step{number: len(j.steps) + 1, kind: kind, name: name})
	return &j.steps[len(j.steps)-1]
}
