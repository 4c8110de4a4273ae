package integration

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/agent"
	"github.com/agentplatform/agentplatform/pkg/channel"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/notify"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/thread"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// Taking is something that a person has said outside, and the delivery that it came in.
type Taking struct {
	Integration Integration
	Said        channel.Said
	UserID      string   // of a user who said it; "": a person outside
	Delivery    Delivery // as far as it is known
	Again       bool     // an operator has it taken in although it may have been before
}

// Taken is what came of it. Whoever has it must then deliver the notices, dispatch the turn, and have a refusal's reply posted.
type Taken struct {
	Delivery Delivery        // as it is in the log
	TurnID   string          // "": none
	Notices  []notify.Notice // to deliver
	Refusal  string          // the id of a reply that says so; "": none
}

// channels are what the threads of each provider are.
var channels = map[Provider]thread.Channel{Slack: thread.Slack, GitHub: thread.GitHub, Email: thread.Email, Generic: thread.Auto}

// Why nothing is written; all roll the transaction back.
var (
	errTaken   = errors.New("integration: it was taken in before")
	errNothing = errors.New("integration: there is nothing to do")
)

// Take writes what was said: keys, conversation, thread, message, turn and the log's row, all or nothing. The same delivery, or another one of the same
// message, is a duplicate, whoever comes at the same moment; two first messages of a conversation make one thread. What the agent, its limits or a budget
// refuse is in the log as an error, and the conversation is told that there is no answer.
func Take(ctx context.Context, db *postgres.DB, t Taking) (Taken, error) {
	t.Said.Key = plain(t.Said.Key)
	for {
		out := Taken{Delivery: t.Delivery}
		err := db.InTenant(ctx, t.Delivery.TenantID, func(tx pgx.Tx) error {
			out = Taken{Delivery: t.Delivery}
			return t.write(ctx, tx, &out)
		})
		var refused *fault.Error
		switch {
		case err == nil:
			return out, nil
		case postgres.IsUnique(err, "integration_threads_pkey"):
			continue // another first message of the conversation was faster: its thread is there now
		case errors.Is(err, errTaken):
			return t.log(ctx, db, Duplicate, nil)
		case errors.Is(err, errNothing):
			t.Delivery.Body = nil // people's talk with one another
			return t.log(ctx, db, OK, nil)
		case errors.As(err, &refused) && refused.Type != fault.InternalError:
			return t.refuse(ctx, db, refused)
		}
		return out, err
	}
}

// write does it, within the transaction: the keys first, so that copies wait for one another and for nobody else; then the conversation.
func (t Taking) write(ctx context.Context, tx pgx.Tx, out *Taken) error {
	var threadUUID string
	var public ident.Thread
	fresh := true
	var b pgx.Batch
	var a *agent.Agent
	t.takeKeys(&b, &fresh)
	t.queueAgent(&b, &a)
	b.Queue(`select th.uuid, th.prefix, th.number from integration_threads x join threads th on th.tenant_id = x.tenant_id and th.uuid = x.thread_uuid
		where x.integration_id = $1 and x.key = $2 for no key update of x`, t.Integration.ID, t.Said.Key).Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&threadUUID, &public.Prefix, &public.Number}, func() error { return nil })
		return err
	})
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return err
	}
	switch {
	case !fresh:
		return errTaken
	case threadUUID != "":
		return t.goOn(ctx, tx, threadUUID, public.String(), out)
	case !t.Said.Opens:
		return errNothing
	}
	return t.open(ctx, tx, a, out)
}

// queueAgent asks for what is needed of the agent whose thread is opened.
func (t Taking) queueAgent(b *pgx.Batch, a **agent.Agent) {
	b.Queue(`select id, status, template_id, turns_per_minute, turns_per_hour, turns_per_day from agents where id = $1`, t.Integration.AgentID).Query(func(rows pgx.Rows) error {
		*a = nil
		found := agent.Agent{RateLimits: &agent.RateLimits{}}
		l := found.RateLimits
		_, err := pgx.ForEachRow(rows, []any{&found.ID, &found.Status, &found.TemplateID, &l.TurnsPerMinute, &l.TurnsPerHour, &l.TurnsPerDay}, func() error {
			*a = &found
			return nil
		})
		return err
	})
}

// goOn writes the message into the conversation's thread.
func (t Taking) goOn(ctx context.Context, tx pgx.Tx, threadUUID, threadID string, out *Taken) error {
	out.Delivery.Outcome, out.Delivery.ThreadUUID, out.Delivery.ThreadID = OK, &threadUUID, &threadID
	var b pgx.Batch
	b.Queue(`update integration_threads set address = $3 where integration_id = $1 and key = $2`, t.Integration.ID, t.Said.Key, t.Said.Address)
	Log(&b, out.Delivery)
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return err
	}
	w := t.words()
	asked, err := turn.Request(ctx, tx, t.Delivery.TenantID, turn.Ask{ThreadID: threadID, Body: w.Body, Metadata: w.Metadata, OnBusy: turn.Enqueue, UserID: t.UserID, Outside: true})
	out.TurnID, out.Notices = asked.TurnID, asked.Notices
	return err
}

// open begins the conversation's thread.
func (t Taking) open(ctx context.Context, tx pgx.Tx, a *agent.Agent, out *Taken) error {
	i := t.Integration
	if a == nil {
		return fault.Invalid("the integration has no agent")
	}
	th := thread.Thread{Channel: channels[i.Provider], Title: t.title(), Metadata: t.metadata()}
	var err error
	out.TurnID, err = turn.Open(ctx, tx, t.Delivery.TenantID, *a, &th, t.words(), func(b *pgx.Batch, _ string) {
		b.Queue(`insert into integration_threads (tenant_id, integration_id, key, thread_uuid, address) values ($1, $2, $3, $4, $5)`,
			t.Delivery.TenantID, i.ID, t.Said.Key, th.UUID, t.Said.Address)
		out.Delivery.Outcome, out.Delivery.ThreadUUID = OK, &th.UUID
		Log(b, out.Delivery)
	})
	out.Delivery.ThreadID = &th.ID
	return err
}

// log writes that nothing was taken in.
func (t Taking) log(ctx context.Context, db *postgres.DB, outcome Outcome, why *string) (Taken, error) {
	out := Taken{Delivery: t.Delivery}
	out.Delivery.Outcome, out.Delivery.Error = outcome, why
	var b pgx.Batch
	Log(&b, out.Delivery)
	return out, db.Once(ctx, t.Delivery.TenantID, &b)
}

// refuse writes that there is no answer to what was said, once as well, and a reply that says so.
func (t Taking) refuse(ctx context.Context, db *postgres.DB, why *fault.Error) (Taken, error) {
	var out Taken
	err := db.InTenant(ctx, t.Delivery.TenantID, func(tx pgx.Tx) error {
		out = Taken{Delivery: t.Delivery, Refusal: ident.New()}
		fresh := true
		var keys, b pgx.Batch
		t.takeKeys(&keys, &fresh)
		if err := tx.SendBatch(ctx, &keys).Close(); err != nil {
			return err
		}
		if !fresh {
			return errTaken
		}
		out.Delivery.Outcome, out.Delivery.Error = Failed, &why.Message
		b.Queue(`insert into integration_replies (tenant_id, id, integration_id, thread_uuid, address) select $1, $2, $3, x.thread_uuid, $5::json
			from (select) one left join integration_threads x on x.integration_id = $3 and x.key = $4`,
			t.Delivery.TenantID, out.Refusal, t.Integration.ID, t.Said.Key, t.Said.Address)
		Log(&b, out.Delivery)
		return tx.SendBatch(ctx, &b).Close()
	})
	if errors.Is(err, errTaken) {
		return t.log(ctx, db, Duplicate, nil)
	}
	return out, err
}
