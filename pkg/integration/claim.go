package integration

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/mail"
)

// letter is what a reply says, and where it goes.
type letter struct {
	integration *Integration    // nil: it was deleted
	address     json.RawMessage // the provider's
	threadID    string          // public; "": there is none
	turnID      string          // "": none
	body        *string         // of the message; nil: there is none
	messageID   *string         // that is said; nil: that there is no answer
	receivers   []string        // of a mail: who wrote what the turn answers, else who wrote last, as far as they are users still
	replyToken  string          // of a mail: in the address that it is answered at
}

// asked are the messages m that the reply r answers, or if its turn t has none, what was said before them; own: those of the turn, or of the one it repeats.
const asked = `from integration_replies r left join thread_turns t on t.id = r.turn_id
		join messages m on m.thread_uuid = r.thread_uuid and m.role = 'user' and m.metadata->>'kind' = 'integration' and m.turn_number <= coalesce(t.number, m.turn_number)
			and m.position < coalesce((select said.position from messages said where said.thread_uuid = r.thread_uuid and said.id = r.message_id order by said.position desc limit 1), m.position + 1)
		cross join lateral (select (m.turn_id in (t.id, t.retry_of)) is true as own) o`

// claim takes the first of a thread's replies that are not over, if it may be posted now, in a transaction of its own: the provider is asked behind it. A reply
// has one address for good, from its first claim on: that of the last message that it answers.
func (c *Courier) claim(ctx context.Context, t ReplyTask) (r claimed, found bool, err error) {
	err = c.DB.InTenant(ctx, t.TenantID, func(tx pgx.Tx) error {
		r, found = claimed{tenantID: t.TenantID, lease: ident.New()}, true
		var threadUUID *string
		err := tx.QueryRow(ctx, `with head as (
				select id, asked_at from integration_replies where next_at is not null and (thread_uuid = nullif($1, '')::uuid or $1 = '' and id = nullif($2, '')::uuid)
				order by created_at, id limit 1 for no key update)
			update integration_replies r set status = 'posting', lease_id = $3, attempts = r.attempts + 1, asked_at = coalesce(r.asked_at, clock_timestamp()),
				next_at = clock_timestamp() + $4
			from head where r.id = head.id and (r.status = 'queued' and (r.attempts = 0 or r.next_at <= clock_timestamp()) or r.status = 'posting' and r.next_at <= clock_timestamp())
			returning r.id, r.integration_id, r.attempts, head.asked_at, r.created_at, r.thread_uuid, r.message_id, coalesce(r.turn_id::text, ''), r.address`,
			t.ThreadUUID, t.ReplyID, r.lease, leaseTime).
			Scan(&r.id, &r.integrationID, &r.attempts, &r.asked, &r.created, &threadUUID, &r.messageID, &r.turnID, &r.address)
		if errors.Is(err, pgx.ErrNoRows) {
			found = false
			return c.wait(ctx, tx, t)
		}
		if err != nil || r.lost() {
			return err
		}
		return r.read(ctx, tx, threadUUID)
	})
	return r, found, err
}

// wait puts the replies off that come behind one which is not due, so that the sweep does not find them each minute.
func (c *Courier) wait(ctx context.Context, tx pgx.Tx, t ReplyTask) error {
	if t.ThreadUUID == "" {
		return nil
	}
	_, err := tx.Exec(ctx, `update integration_replies r set next_at = head.next_at from (
			select id, next_at from integration_replies where thread_uuid = $1 and next_at is not null order by created_at, id limit 1) head
		where r.thread_uuid = $1 and r.id <> head.id and r.next_at < least(clock_timestamp(), head.next_at)`, t.ThreadUUID)
	return err
}

// read completes a claimed reply.
func (r *claimed) read(ctx context.Context, tx pgx.Tx, threadUUID *string) error {
	var b pgx.Batch
	b.Queue(`select `+columns+` from integrations where id = $1`, r.integrationID).Query(func(rows pgx.Rows) error {
		found, err := pgx.CollectRows(rows, scan)
		if len(found) > 0 {
			r.integration = &found[0]
		}
		return err
	})
	if threadUUID != nil {
		b.Queue(`update integration_replies r set address = coalesce(r.address, (select m.metadata->'address' `+asked+` where r.id = $2 and m.metadata->'address' is not null
				order by o.own desc, m.position desc limit 1), x.address)
			from threads th join integration_threads x on x.tenant_id = th.tenant_id and x.thread_uuid = th.uuid where th.uuid = $1 and r.id = $2
			returning th.prefix, th.number, r.address, x.reply_token::text`, *threadUUID, r.id).
			QueryRow(func(row pgx.Row) error {
				var public ident.Thread
				err := row.Scan(&public.Prefix, &public.Number, &r.address, &r.replyToken)
				r.threadID = public.String()
				return err
			})
		b.Queue(`select u.email, bool_or(o.own) `+asked+` join users u on u.tenant_id = m.tenant_id and u.id = m.user_id and u.status = 'active' where r.id = $1
			group by u.email order by bool_or(o.own) desc, case when bool_or(o.own) then min(m.position) else -max(m.position) end limit $2`, r.id, mail.MaxRecipients).
			Query(r.readReceivers)
		if r.messageID != nil {
			b.Queue(`select body from messages where thread_uuid = $1 and id = $2 order by position desc limit 1`, *threadUUID, *r.messageID).Query(func(rows pgx.Rows) error {
				_, err := pgx.ForEachRow(rows, []any{&r.body}, func() error { return nil })
				return err
			})
		}
	}
	return tx.SendBatch(ctx, &b).Close()
}

// readReceivers takes those who have asked what is answered, or if none of them is a user any more, the last one who has written.
func (r *claimed) readReceivers(rows pgx.Rows) error {
	r.receivers = nil
	var address string
	var own bool
	_, err := pgx.ForEachRow(rows, []any{&address, &own}, func() error {
		if own || len(r.receivers) == 0 {
			r.receivers = append(r.receivers, address)
		}
		return nil
	})
	return err
}
