package turn

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/agent"
	"github.com/agentplatform/agentplatform/pkg/budget"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/notify"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/pkg/text"
	"github.com/agentplatform/agentplatform/pkg/thread"
)

// OnBusy is what a message does while a turn runs or waits in its thread.
type OnBusy string

const (
	Enqueue   OnBusy = "ENQUEUE"
	Reject    OnBusy = "REJECT"
	Interrupt OnBusy = "INTERRUPT"
)

// Ask is a user message.
type Ask struct {
	ThreadID string // public
	Body     string
	Metadata *string // a JSON object, as text: what came with it; nil: nothing
	OnBusy   OnBusy
	UserID   string // who sent it; "": nobody, but the platform for a schedule or a routine. It answers no question that a turn has put to a person
	Outside  bool   // a person outside sent it, who is no user and answers questions as a user does
}

// person reports whether somebody sent it.
func (a Ask) person() bool { return a.UserID != "" || a.Outside }

// Asked is what Request wrote.
type Asked struct {
	Message  thread.Message
	TurnID   string
	Callback string          // of the turn that the message has ended, which a workflow may wait for: to be told; "": none
	Notices  []notify.Notice // to deliver after the commit
}

// Request writes a user message and the queued turn that answers it: the thread's queued one if there is one, else a new one. A new one that
// the agent's rate limits or a budget do not let start is RateLimitExceeded or BudgetExceeded, and nothing is written.
//
// Whoever commits must then deliver the notices and dispatch the turn; what is lost on the way is found by Reap.
func Request(ctx context.Context, tx pgx.Tx, tenantID string, a Ask) (Asked, error) {
	if err := text.Check("body", a.Body, 1, thread.MaxBody); err != nil {
		return Asked{}, err
	}
	s, err := lockThread(ctx, tx, a.ThreadID)
	if err != nil {
		return Asked{}, err
	}
	if err := s.agent.CheckTurns(); err != nil {
		return Asked{}, err
	}
	if s.waitsFor == Answer && !a.person() {
		return Asked{}, fault.Invalid("thread %s waits for a person's answer", a.ThreadID)
	}
	if s.waitsFor == Answer {
		return s.answered(ctx, tx, tenantID, a)
	}
	if a.OnBusy == Reject && (s.running != "" || s.queued != "" || s.waiting != "") {
		return Asked{}, fault.Invalid("thread %s has an unfinished turn", a.ThreadID)
	}
	var b pgx.Batch
	var ended string
	turnID := s.queued
	if turnID == "" {
		if err := CheckRate(ctx, tx, s.agentID, s.limits); err != nil {
			return Asked{}, err
		}
		turnID = ident.New()
		s.turnNumber++
		b.Queue(`insert into thread_turns (tenant_id, id, thread_uuid, agent_id, number, lease_until) values ($1, $2, $3, $4, $5, clock_timestamp() + $6)`,
			tenantID, turnID, s.uuid, s.agentID, s.turnNumber, DispatchGrace)
	}
	if a.OnBusy == Interrupt && s.running != "" {
		b.Queue(`update thread_turns set interrupt = true where id = $1`, s.running)
	}
	if a.OnBusy == Interrupt && s.waiting != "" { // for approval of a call: nobody works on it
		b.Queue(`update thread_turns set status = 'interrupted', waits_for = null, lease_until = null, finished_at = $2 where id = $1
			returning coalesce(callback_id::text, '')`, s.waiting, ident.Now()).QueryRow(func(row pgx.Row) error { return row.Scan(&ended) })
	}
	m := queueMessage(&b, tenantID, s, turnID, a.words(), thread.EstimateTokens(a.Body))
	m.ThreadID = a.ThreadID
	updated := ident.Now()
	b.Queue(`update threads set message_count = message_count + 1, turn_count = $2, token_count = token_count + $3, status = 'open', updated_at = greatest(updated_at, $4) where uuid = $1`,
		s.uuid, s.turnNumber, m.TokenCount, updated)

	if s.queued == "" {
		if err := reserve(&b, budget.Turn{ID: turnID, AgentID: s.agentID, SpaceID: s.spaceID}, s.price); err != nil {
			return Asked{}, err
		}
	}
	told := s.told(tenantID, m, updated)
	asked := Asked{Message: m, TurnID: turnID, Notices: []notify.Notice{notify.Queue(&b, tenantID, s.uuid, told...)}}
	err = tx.SendBatch(ctx, &b).Close()
	asked.Callback = ended
	return asked, budget.Refusal(err)
}

func (a Ask) words() Words { return Words{Body: a.Body, Metadata: a.Metadata, UserID: a.UserID} }

// Words are what a user message says.
type Words struct {
	Body     string
	Metadata *string // a JSON object, as text: what came with it; nil: nothing
	UserID   string  // who said it; "": no user
}

// queueMessage adds a user message behind the thread's others, which the turn of that id and of the thread's number answers.
func queueMessage(b *pgx.Batch, tenantID string, s standing, turnID string, w Words, tokens int) thread.Message {
	m := thread.Message{ID: ident.New(), Role: thread.User, Body: w.Body, TokenCount: tokens, TurnID: &turnID, Metadata: w.Metadata, CreatedAt: ident.Now()}
	b.Queue(`insert into messages (tenant_id, id, thread_uuid, position, role, body, token_count, turn_id, turn_number, user_id, metadata, created_at, tool_call_id)
		values ($1, $2, $3, $4, 'user', $5, $6, $7, $8, nullif($9, '')::uuid, $10::json, $11, nullif($12, ''))`,
		tenantID, m.ID, s.uuid, s.messages+1, m.Body, m.TokenCount, turnID, s.turnNumber, w.UserID, m.Metadata, m.CreatedAt, s.answers)
	return m
}

// standing is a locked thread as a new message finds it.
type standing struct {
	uuid       string
	status     thread.Status
	title      *string
	metadata   *string
	messages   int
	turnNumber int // of the queued turn, else of the last one
	agentID    string
	spaceID    string
	agent      agent.Status
	limits     agent.RateLimits
	price      Price
	running    string // turn id
	queued     string // turn id
	waiting    string // turn id
	waitsFor   WaitsFor
	answers    string // the id of the call whose question the message answers
}

// lockThread locks the thread and its unfinished turns. The turns are read by a statement of their own, behind the lock: a statement sees
// what was committed when it began.
func lockThread(ctx context.Context, tx pgx.Tx, id string) (standing, error) {
	public, ok := ident.ParseThread(id)
	if !ok {
		return standing{}, fault.Missing("thread")
	}
	var s standing
	var b pgx.Batch
	b.Queue(`select uuid, status, title, metadata::text, message_count, turn_count, agent_id, space_id from threads where prefix = $1 and number = $2 for no key update`,
		public.Prefix, public.Number).QueryRow(func(row pgx.Row) error {
		return row.Scan(&s.uuid, &s.status, &s.title, &s.metadata, &s.messages, &s.turnNumber, &s.agentID, &s.spaceID)
	})
	// Each kind of unfinished turn has a unique index of its own, so each is asked for by itself; the queued one first, for it may be
	// claimed until it is locked.
	b.Queue(`select q.id from thread_turns q where q.status = 'queued'
		and q.thread_uuid = (select uuid from threads where prefix = $1 and number = $2) for no key update of q`,
		public.Prefix, public.Number).Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&s.queued}, func() error { return nil })
		return err
	})
	b.Queue(`select a.status, a.turns_per_minute, a.turns_per_hour, a.turns_per_day,
			coalesce((select r.id::text from thread_turns r where r.thread_uuid = t.uuid and r.status = 'running'), ''),
			coalesce(a.model_id, tp.model_id), b.capped, b.tokens_per_turn
		from threads t join agents a on a.tenant_id = t.tenant_id and a.id = t.agent_id
			join agent_templates tp on tp.tenant_id = a.tenant_id and tp.id = a.template_id
			cross join lateral budget_terms(t.agent_id, t.space_id) b
		where t.prefix = $1 and t.number = $2`, public.Prefix, public.Number).QueryRow(func(row pgx.Row) error {
		return row.Scan(&s.agent, &s.limits.TurnsPerMinute, &s.limits.TurnsPerHour, &s.limits.TurnsPerDay, &s.running,
			&s.price.ModelID, &s.price.Terms.Capped, &s.price.Terms.TokensPerTurn)
	})
	b.Queue(`select w.id, w.waits_for from thread_turns w where w.status = 'waiting'
		and w.thread_uuid = (select uuid from threads where prefix = $1 and number = $2) for no key update of w`,
		public.Prefix, public.Number).Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&s.waiting, &s.waitsFor}, func() error { return nil })
		return err
	})
	err := tx.SendBatch(ctx, &b).Close()
	if errors.Is(err, pgx.ErrNoRows) {
		return standing{}, fault.Missing("thread")
	}
	return s, err
}

// answered writes the message as the answer that the waiting turn asked for, which goes on with it. It is no new turn: neither limits nor budgets
// are asked again.
func (s standing) answered(ctx context.Context, tx pgx.Tx, tenantID string, a Ask) (Asked, error) {
	var number int
	var kept []byte
	err := tx.QueryRow(ctx, `select t.number, s.number, s.response from thread_turns t join turn_steps s on s.tenant_id = t.tenant_id and s.turn_id = t.id and s.status = 'waiting'
		where t.id = $1`, s.waiting).Scan(&s.turnNumber, &number, &kept)
	if err != nil {
		return Asked{}, err
	}
	var call thread.ToolResult
	if err := json.Unmarshal(kept, &call); err != nil {
		return Asked{}, err
	}
	result, err := answer(call.ToolCallID, call.Name, a.Body)
	if err != nil {
		return Asked{}, err
	}
	s.answers = call.ToolCallID
	var b pgx.Batch
	m := queueMessage(&b, tenantID, s, s.waiting, a.words(), thread.EstimateTokens(a.Body))
	m.ThreadID = a.ThreadID
	finishStep(&b, s.waiting, step{number: number, response: result})
	queueResume(&b, s.waiting)
	updated := ident.Now()
	b.Queue(`update threads set message_count = message_count + 1, token_count = token_count + $2, status = 'open', updated_at = greatest(updated_at, $3) where uuid = $1`,
		s.uuid, m.TokenCount, updated)
	asked := Asked{Message: m, TurnID: s.waiting, Notices: []notify.Notice{notify.Queue(&b, tenantID, s.uuid, s.told(tenantID, m, updated)...)}}
	return asked, tx.SendBatch(ctx, &b).Close()
}

// told is what subscribers are told of a message that has made the thread an open one.
func (s standing) told(tenantID string, m thread.Message, updated ident.Time) []publish.Event {
	events := []publish.Event{newMessage(tenantID, m)}
	if s.status != thread.Open {
		events = append(events, publish.ThreadUpdate{TenantID: tenantID, ThreadID: m.ThreadID,
			Thread: publish.Thread{ID: m.ThreadID, Status: string(thread.Open), Title: s.title, Metadata: s.metadata, UpdatedAt: updated}})
	}
	return events
}

// CheckRate counts the agent's turns behind the agent's lock, so that concurrent ones cannot pass a limit together: tx must write the turn.
func CheckRate(ctx context.Context, tx pgx.Tx, agentID string, limits agent.RateLimits) error {
	if limits == (agent.RateLimits{}) {
		return nil
	}
	if _, err := tx.Exec(ctx, `select from agents where id = $1 for no key update`, agentID); err != nil {
		return err
	}
	var minute, hour, day int
	err := tx.QueryRow(ctx, `select count(*) filter (where queued_at > clock_timestamp() - interval '1 minute'),
		count(*) filter (where queued_at > clock_timestamp() - interval '1 hour'), count(*)
		from thread_turns where agent_id = $1 and thread_uuid is not null and queued_at > clock_timestamp() - interval '1 day'`, agentID).Scan(&minute, &hour, &day)
	if err != nil {
		return err
	}
	for _, l := range []struct {
		limit *int
		count int
		per   string
	}{{limits.TurnsPerMinute, minute, "minute"}, {limits.TurnsPerHour, hour, "hour"}, {limits.TurnsPerDay, day, "day"}} {
		if l.limit != nil && l.count >= *l.limit {
			return fault.New(fault.RateLimitExceeded, "the agent's limit of %d turns per %s is reached", *l.limit, l.per)
		}
	}
	return nil
}
