package integration

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/agentplatform/agentplatform/pkg/agent"
	"github.com/agentplatform/agentplatform/pkg/budget"
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
	errStale   = errors.New("integration: the conversation has just been opened, or is gone")
)

// errNoSpace is no refusal: the provider delivers again, and by then there may be one.
var errNoSpace = errors.New("integration: the tenant has no default space")

// Take writes what was said: keys, conversation, thread, message, turn and the log's row, all or nothing. The same delivery, or another one of the same
// message, is a duplicate, whoever comes at the same moment; two first messages of a conversation make one thread. What the agent, its limits or a budget
// refuse is in the log as an error, and the conversation is told that there is no answer.
func Take(ctx context.Context, db *postgres.DB, t Taking) (Taken, error) {
	t.Said.Key = plain(t.Said.Key)
	for {
		out, err := t.write(ctx, db)
		var refused *fault.Error
		switch {
		case errors.Is(err, errStale):
			continue
		case errors.Is(err, errTaken):
			return t.again(ctx, db)
		case errors.Is(err, errNothing):
			t.Delivery.Body = nil // people's talk with one another
			return t.log(ctx, db, OK, nil)
		case errors.As(err, &refused) && refused.Type != fault.InternalError:
			return t.refuse(ctx, db, refused)
		}
		return out, err
	}
}

// write does it, as things stand. What is read may have changed when it is written: the database refuses what is there already, and it is begun anew.
func (t Taking) write(ctx context.Context, db *postgres.DB) (Taken, error) {
	now, err := t.read(ctx, db)
	switch {
	case err != nil:
		return Taken{}, err
	case now.taken:
		return Taken{}, errTaken
	case now.threadUUID != nil:
		return t.goOn(ctx, db, now)
	case !t.Said.Opens:
		return Taken{}, errNothing
	}
	return t.open(ctx, db, now)
}

// standing is what is there of a conversation, and of the agent whose thread it would be.
type standing struct {
	taken      bool
	threadUUID *string
	public     ident.Thread
	agentID    *string
	status     agent.Status
	limits     agent.RateLimits
	spaceID    string
	price      turn.Price
}

func (t Taking) read(ctx context.Context, db *postgres.DB) (standing, error) {
	found, err := postgres.All(ctx, db.In(t.Delivery.TenantID), func(row pgx.CollectableRow) (n standing, err error) {
		err = row.Scan(&n.taken, &n.threadUUID, &n.public.Prefix, &n.public.Number, &n.agentID, &n.status, &n.limits.TurnsPerMinute, &n.limits.TurnsPerHour, &n.limits.TurnsPerDay,
			&n.spaceID, &n.price.ModelID, &n.price.Terms.Capped, &n.price.Terms.TokensPerTurn)
		n.taken = n.taken && !t.Again
		return n, err
	}, `select exists (select from delivery_keys k where k.source_id = $1 and k.key = any($3::text[])), x.thread_uuid, coalesce(th.prefix, ''), coalesce(th.number, 0),
			a.id, coalesce(a.status, 'archived'), a.turns_per_minute, a.turns_per_hour, a.turns_per_day, s.id, coalesce(a.model_id, tp.model_id, ''), coalesce(b.capped, false), b.tokens_per_turn
		from spaces s left join agents a on a.tenant_id = s.tenant_id and a.id = $4
			left join agent_templates tp on tp.tenant_id = a.tenant_id and tp.id = a.template_id
			left join lateral budget_terms(a.id, s.id) b on a.id is not null
			left join integration_threads x on x.tenant_id = s.tenant_id and x.integration_id = $1 and x.key = $2
			left join threads th on th.tenant_id = x.tenant_id and th.uuid = x.thread_uuid
		where s.is_default`, t.Integration.ID, t.Said.Key, t.keys(), t.Integration.AgentID)
	switch {
	case err != nil:
		return standing{}, err
	case len(found) == 0:
		return standing{}, errNoSpace
	}
	return found[0], nil
}

// goOn writes the message into the conversation's thread.
func (t Taking) goOn(ctx context.Context, db *postgres.DB, now standing) (out Taken, err error) {
	threadID := now.public.String()
	err = db.InTenant(ctx, t.Delivery.TenantID, func(tx pgx.Tx) error {
		out = Taken{Delivery: t.Delivery}
		out.Delivery.Outcome, out.Delivery.ThreadUUID, out.Delivery.ThreadID = OK, now.threadUUID, &threadID
		there := false
		var b pgx.Batch
		t.takeKeys(&b)
		b.Queue(`update integration_threads set address = $3 where integration_id = $1 and key = $2 and thread_uuid = $4`, t.Integration.ID, t.Said.Key, t.Said.Address, now.threadUUID).
			Exec(func(done pgconn.CommandTag) error {
				there = done.RowsAffected() > 0
				return nil
			})
		Log(&b, out.Delivery)
		if err := known(tx.SendBatch(ctx, &b).Close()); err != nil {
			return err
		}
		if !there {
			return errStale
		}
		w := t.words()
		asked, err := turn.Request(ctx, tx, t.Delivery.TenantID, turn.Ask{ThreadID: threadID, Body: w.Body, Metadata: w.Metadata, OnBusy: turn.Enqueue, UserID: t.UserID, Outside: true})
		out.TurnID, out.Notices = asked.TurnID, asked.Notices
		return err
	})
	return out, err
}

// open begins the conversation's thread, in one round trip unless the agent's turns are limited.
func (t Taking) open(ctx context.Context, db *postgres.DB, now standing) (Taken, error) {
	if now.agentID == nil {
		return Taken{}, fault.Invalid("the integration has no agent")
	}
	if err := now.status.CheckTurns(); err != nil {
		return Taken{}, err
	}
	tenantID, i := t.Delivery.TenantID, t.Integration
	out := Taken{TurnID: ident.New()}
	th := thread.Thread{Channel: channels[i.Provider], Title: t.title(), Metadata: t.metadata(), AgentID: *now.agentID, SpaceID: now.spaceID}
	start := func(b *pgx.Batch) error {
		out.Delivery = t.Delivery
		if err := turn.Start(b, tenantID, turn.Call{RunID: out.TurnID}, &th, t.words(), now.price); err != nil {
			return err
		}
		b.Queue(`insert into integration_threads (tenant_id, integration_id, key, thread_uuid, address) values ($1, $2, $3, $4, $5)`, tenantID, i.ID, t.Said.Key, th.UUID, t.Said.Address)
		out.Delivery.Outcome, out.Delivery.ThreadUUID = OK, &th.UUID
		Log(b, out.Delivery)
		return nil
	}
	var err error
	if now.limits == (agent.RateLimits{}) {
		var b pgx.Batch
		t.takeKeys(&b)
		if err := start(&b); err != nil {
			return Taken{}, err
		}
		err = db.Once(ctx, tenantID, &b)
	} else {
		err = db.InTenant(ctx, tenantID, func(tx pgx.Tx) error {
			// The keys before the limits: what comes twice at the same moment is a duplicate, however little is allowed.
			var keys, started pgx.Batch
			t.takeKeys(&keys)
			if err := tx.SendBatch(ctx, &keys).Close(); err != nil {
				return err
			}
			if err := turn.CheckRate(ctx, tx, *now.agentID, now.limits); err != nil {
				return err
			}
			if err := start(&started); err != nil {
				return err
			}
			return tx.SendBatch(ctx, &started).Close()
		})
	}
	if postgres.IsUnique(err, "integration_threads_pkey") {
		err = errStale // another first message of the conversation was faster: its thread is there now
	}
	out.Delivery.ThreadID = &th.ID
	return out, known(budget.Refusal(err))
}

// known tells what was taken in before apart from what is wrong.
func known(err error) error {
	if postgres.IsUnique(err, "delivery_keys_pkey") {
		return errTaken
	}
	return err
}

// again logs a duplicate, without its body: the delivery that was taken in has it, and providers try often.
func (t Taking) again(ctx context.Context, db *postgres.DB) (Taken, error) {
	t.Delivery.Body = nil
	return t.log(ctx, db, Duplicate, nil)
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
	out := Taken{Delivery: t.Delivery, Refusal: ident.New()}
	out.Delivery.Outcome, out.Delivery.Error = Failed, &why.Message
	var b pgx.Batch
	t.takeKeys(&b)
	b.Queue(`insert into integration_replies (tenant_id, id, integration_id, thread_uuid, address) select $1, $2, $3, x.thread_uuid, $5::json
		from (select) one left join integration_threads x on x.integration_id = $3 and x.key = $4`,
		t.Delivery.TenantID, out.Refusal, t.Integration.ID, t.Said.Key, t.Said.Address)
	Log(&b, out.Delivery)
	err := known(db.Once(ctx, t.Delivery.TenantID, &b))
	if errors.Is(err, errTaken) {
		return t.again(ctx, db)
	}
	return out, err
}
