// Package notify tells subscribers of what was committed, at least once.
//
// An event is written in the transaction of the change it tells of, published after the commit and then deleted. Whoever dies in between
// leaves the row, and Sweep publishes it again: a subscriber may see an event twice, and never misses one for good while it listens.
package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/publish"
)

// Notice is a written event that was not yet published.
type Notice struct {
	ID    string
	Event publish.Event
}

// Queue adds the event's row to a batch that is going to be committed.
func Queue(b *pgx.Batch, tenantID string, e publish.Event) Notice {
	n := Notice{ident.New(), e}
	b.Queue(`insert into notifications (tenant_id, id, event) values ($1, $2, $3)`, tenantID, n.ID, e)
	return n
}

// Deliver publishes committed notices in order and deletes them; it reports whether all were published. What fails stays for Sweep, so it is
// logged and not an error of the caller's.
func Deliver(ctx context.Context, db *postgres.DB, to publish.Publisher, tenantID string, notices ...Notice) bool {
	published := Publish(ctx, to, tenantID, notices...)
	var b pgx.Batch
	Delete(&b, published)
	if b.Len() == 0 {
		return false
	}
	if err := db.OnceRelaxed(ctx, tenantID, &b); err != nil && ctx.Err() == nil { // a process that stops has nothing to warn of: at least once
		slog.WarnContext(ctx, "a published notification was not deleted; it will be published again", "tenant_id", tenantID, "error", err)
	}
	return true
}

// Publish is the first half of Deliver. It returns the ids of what was published, for somebody to Delete in a transaction of theirs; until
// then Sweep may publish it again.
func Publish(ctx context.Context, to publish.Publisher, tenantID string, notices ...Notice) (published []string) {
	if len(notices) == 0 {
		return nil
	}
	events := make([]publish.Event, len(notices))
	for i, n := range notices {
		events[i] = n.Event
		published = append(published, n.ID)
	}
	if err := to.Publish(ctx, events...); err != nil {
		slog.WarnContext(ctx, "publishing failed; the sweep tries again", "tenant_id", tenantID, "error", err)
		return nil
	}
	return published
}

// Delete adds the end of published notices to a batch.
func Delete(b *pgx.Batch, published []string) {
	for _, id := range published {
		b.Queue(`delete from notifications where id = $1`, id)
	}
}

// sweepSize bounds one sweep's work.
const sweepSize = 1000

// Sweep publishes what is older than age: its writer died. It returns how many it delivered.
func Sweep(ctx context.Context, db *postgres.DB, to publish.Publisher, age time.Duration) (int, error) {
	stale := map[string][]string{}
	err := db.Unbound(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `select tenant_id, notification_id from lookup_stale_notifications($1, $2)`, age, sweepSize)
		if err != nil {
			return err
		}
		clear(stale)
		var tenantID, id string
		_, err = pgx.ForEachRow(rows, []any{&tenantID, &id}, func() error {
			stale[tenantID] = append(stale[tenantID], id)
			return nil
		})
		return err
	})
	delivered := 0
	for tenantID, ids := range stale {
		notices, failed := read(ctx, db, tenantID, ids)
		err = errors.Join(err, failed) // other tenants must not wait for it
		for _, n := range notices {    // one by one: what cannot be published must not keep the others
			if Deliver(ctx, db, to, tenantID, n) {
				delivered++
			}
		}
	}
	return delivered, err
}

// read gets a tenant's stored notices; one that cannot be read is reported and keeps the others from nothing.
func read(ctx context.Context, db *postgres.DB, tenantID string, ids []string) (notices []Notice, err error) {
	rows, err := db.In(tenantID).Query(ctx, `select id, event::text from notifications where id = any($1::uuid[]) order by id`, ids)
	if err != nil {
		return nil, err
	}
	var unreadable error
	var id, event string
	_, err = pgx.ForEachRow(rows, []any{&id, &event}, func() error {
		e, err := publish.Decode([]byte(event))
		if err != nil {
			unreadable = errors.Join(unreadable, fmt.Errorf("notification %s: %w", id, err))
			return nil
		}
		notices = append(notices, Notice{id, e})
		return nil
	})
	return notices, errors.Join(err, unreadable)
}
