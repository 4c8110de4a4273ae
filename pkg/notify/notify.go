package notify

import (
	"context"
	"log/slog"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/publish"
)

// Notice is events of one thread that a transaction stores together, and what is to be published between them.
type Notice struct {
	threadUUID string
	events     []publish.Event // in order; numbered when the batch has run
}

// Queue adds the rows of a thread's events to a batch, which numbers them when it runs; what is not of the thread is published only.
//
// It comes last in the batch, and the batch last in its transaction: the thread's other events wait for the commit. By then the message of a
// NewMessage is in the thread.
func Queue(b *pgx.Batch, tenantID, threadUUID string, events ...publish.Event) Notice {
	return queue(b, tenantID, threadUUID, nil, events)
}

// QueueTurn is Queue for what an attempt of a turn tells: its events are kept with the turn.
func QueueTurn(b *pgx.Batch, tenantID, threadUUID, turnID string, events ...publish.Event) Notice {
	return queue(b, tenantID, threadUUID, &turnID, events)
}

func queue(b *pgx.Batch, tenantID, threadUUID string, turnID *string, events []publish.Event) Notice {
	n := Notice{threadUUID, slices.Clone(events)}
	var texts, messages []*string // of each event its JSON, or else the message that it tells of
	var again []bool
	for _, e := range n.events {
		if _, ok := e.(publish.ThreadEvent); !ok {
			continue
		}
		var text, message *string
		if m, ok := e.(publish.NewMessage); ok {
			message = &m.Message.ID
		} else {
			raw, _ := e.MarshalJSON() // texts and numbers
			text = ptr(string(raw))
		}
		texts, messages, again = append(texts, text), append(messages, message), append(again, e.Repeatable())
	}
	if len(texts) == 0 {
		return n
	}
	b.Queue(`with counter as (
			insert into thread_sequences as s (tenant_id, thread_uuid, last, prune_at) values ($1, $2, $3, now() + $8)
			on conflict (tenant_id, thread_uuid) do update set last = s.last + excluded.last, prune_at = coalesce(s.prune_at, excluded.prune_at) returning last),
		stored as (
			insert into thread_events (tenant_id, thread_uuid, sequence, turn_id, event, position, undelivered)
			select $1, $2, c.last - $3 + e.n, $4, e.event::json,
				case when e.message is not null then (select m.position from messages m where m.thread_uuid = $2 and m.id = e.message order by m.position desc limit 1) end,
				e.again
			from counter c, unnest($5::text[], $6::uuid[], $7::boolean[]) with ordinality as e (event, message, again, n))
		select last - $3 from counter`, tenantID, threadUUID, len(texts), turnID, texts, messages, again, Kept).QueryRow(func(row pgx.Row) error {
		var number int
		if err := row.Scan(&number); err != nil {
			return err
		}
		for i, e := range n.events {
			if t, ok := e.(publish.ThreadEvent); ok {
				number++
				n.events[i] = t.Numbered(number)
			}
		}
		return nil
	})
	return n
}

func ptr[T any](v T) *T { return &v }

// Published are the numbers of events that the subscribers got, by thread UUID, for somebody to Settle.
type Published map[string][]int

// Deliver publishes committed notices in order and settles them; it reports whether all were published. What fails stays for Sweep, so it is
// logged and not an error of the caller's.
func Deliver(ctx context.Context, db *postgres.DB, to publish.Publisher, tenantID string, notices ...Notice) bool {
	published, all := hand(ctx, to, tenantID, notices)
	var b pgx.Batch
	Settle(&b, published)
	if b.Len() == 0 {
		return all
	}
	if err := db.OnceRelaxed(ctx, tenantID, &b); err != nil && ctx.Err() == nil { // a process that stops has nothing to warn of: at least once
		slog.WarnContext(ctx, "a published event was not settled; it will be published again", "tenant_id", tenantID, "error", err)
	}
	return all
}

// Publish is the first half of Deliver. Somebody must Settle what it returns, in a transaction of theirs; until then Sweep may publish it again.
func Publish(ctx context.Context, to publish.Publisher, tenantID string, notices ...Notice) Published {
	published, _ := hand(ctx, to, tenantID, notices)
	return published
}

// hand hands over what must arrive apart from what may be lost: what fails of the one does not keep the other.
func hand(ctx context.Context, to publish.Publisher, tenantID string, notices []Notice) (published Published, all bool) {
	published, all = Published{}, true
	for _, n := range notices {
		for rest := n.events; len(rest) > 0; {
			again := rest[0].Repeatable()
			end := slices.IndexFunc(rest, func(e publish.Event) bool { return e.Repeatable() != again })
			if end < 0 {
				end = len(rest)
			}
			part := rest[:end]
			rest = rest[end:]
			if err := to.Publish(ctx, part...); err != nil {
				slog.WarnContext(ctx, "publishing failed; clients read what they miss, and the sweep tries messages and updates again", "tenant_id", tenantID, "error", err)
				all = false
				continue
			}
			for _, e := range part {
				if t, ok := e.(publish.ThreadEvent); ok && again {
					published[n.threadUUID] = append(published[n.threadUUID], t.Number())
				}
			}
		}
	}
	return published, all
}

// Settle adds to a batch that published events need not be published again.
func Settle(b *pgx.Batch, published Published) {
	for threadUUID, numbers := range published {
		b.Queue(`update thread_events set undelivered = false where thread_uuid = $1 and sequence = any($2::integer[])`, threadUUID, numbers)
	}
}
