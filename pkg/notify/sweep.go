package notify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/publish"
)

// sweepSize bounds one sweep's work.
const sweepSize = 1000

// Sweep publishes what is older than age and was not: its writer died. It returns how many events it delivered.
func Sweep(ctx context.Context, db *postgres.DB, to publish.Publisher, age time.Duration) (int, error) {
	type thread struct{ tenantID, uuid string }
	stale := map[thread][]int{}
	rows, err := db.Lookup().Query(ctx, `select tenant_id, thread_uuid, sequence from lookup_undelivered_events($1, $2)`, age, sweepSize)
	if err != nil {
		return 0, err
	}
	var t thread
	var number int
	_, err = pgx.ForEachRow(rows, []any{&t.tenantID, &t.uuid, &number}, func() error {
		stale[t] = append(stale[t], number)
		return nil
	})
	delivered := 0
	for t, numbers := range stale {
		events, failed := numbered(ctx, db, t.tenantID, t.uuid, numbers)
		err = errors.Join(err, failed) // other threads must not wait for it
		for _, e := range events {     // one by one: what cannot be published must not keep the others
			if Deliver(ctx, db, to, t.tenantID, Notice{t.uuid, []publish.Event{e}}) {
				delivered++
			}
		}
	}
	return delivered, err
}

// numbered gets stored events of a thread; one that cannot be read is reported and keeps the others from nothing.
func numbered(ctx context.Context, db *postgres.DB, tenantID, threadUUID string, numbers []int) (events []publish.ThreadEvent, err error) {
	rows, err := db.In(tenantID).Query(ctx, `select th.prefix, th.number, `+columns+` from `+stored+` join threads th on th.uuid = e.thread_uuid
		where e.thread_uuid = $1 and e.sequence = any($2::integer[]) order by e.sequence`, threadUUID, numbers)
	if err != nil {
		return nil, err
	}
	var unreadable error
	var r row
	_, err = pgx.ForEachRow(rows, append([]any{&r.thread.Prefix, &r.thread.Number}, r.scan()...), func() error {
		e, err := r.event(tenantID)
		if err != nil {
			unreadable = errors.Join(unreadable, fmt.Errorf("event %d of thread %s: %w", *r.sequence, threadUUID, err))
			return nil
		}
		events = append(events, e)
		return nil
	})
	return events, errors.Join(err, unreadable)
}
