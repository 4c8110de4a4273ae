package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// batch drains one batch. mine is false when another writer holds the lock.
func (r *run) batch(ctx context.Context) (mine bool, err error) {
	limit := r.Batch
	if r.careful > 0 {
		limit = 1
	}
	b := &batch{}
	err = r.DB.Unbound(ctx, func(tx pgx.Tx) (err error) {
		b = &batch{run: r, tx: tx} // anew: a transaction may be run again
		if mine, err = lockWriter(ctx, tx); err != nil || !mine {
			return err
		}
		return b.drain(ctx, limit)
	})
	switch {
	case err == nil && mine:
		b.done(ctx)
	case b.poisoned == nil:
	case r.careful == 0: // some row is not taken: which one is found by trying each alone
		r.careful, err = len(b.rows), nil
	case len(b.rows) == 1 && b.rows[0].reason == "": // this one: the next batch reads it again, and knows. (One that quarantine does not take either is an error.)
		r.poison[b.rows[0].event], err = "cannot be stored: "+b.poisoned.Error(), nil
	}
	return mine, err
}

// batch is one transaction of the writer.
type batch struct {
	*run
	tx       pgx.Tx
	rows     []row
	heads    map[id]*head
	open     int64     // the cadence that events are chained in
	floor    time.Time // recorded_at of the cadence before
	poisoned error     // why the database does not take the rows
}

// lockWriter makes this transaction the one writer, if there is none.
func lockWriter(ctx context.Context, tx pgx.Tx) (got bool, err error) {
	err = tx.QueryRow(ctx, `select pg_try_advisory_xact_lock($1)`, writerLock).Scan(&got)
	return got, err
}

func (b *batch) drain(ctx context.Context, limit int) error {
	b.Signal("drain: locked")
	if !b.compared {
		if err := b.compare(ctx, b.tx); err != nil {
			return err
		}
		b.Signal("drain: compared")
	}
	if err := b.read(ctx, limit); err != nil || len(b.rows) == 0 {
		return err
	}
	b.judge()
	if err := b.readHeads(ctx); err != nil {
		return err
	}
	if b.careful > 0 {
		if err := b.doubt(ctx); err != nil {
			return err
		}
	}
	b.Signal("drain: read")
	if err := b.write(ctx); err != nil {
		if isPoison(err) {
			b.poisoned = err
		}
		return err
	}
	b.Signal("drain: written")
	return nil
}

// isPoison reports whether it is the rows that the database does not take (SQLSTATE classes 22 and 23), not the moment.
func isPoison(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (strings.HasPrefix(pg.Code, "22") || strings.HasPrefix(pg.Code, "23"))
}

// doubt looks for the reason why a batch was not taken: an event that is in a chain already, a head that is not its chain's last event.
func (b *batch) doubt(ctx context.Context) error {
	for i := range b.rows {
		r := &b.rows[i]
		if r.reason != "" {
			continue
		}
		var known, right bool
		h := b.heads[r.tenant]
		err := b.tx.QueryRow(ctx, `select exists (select from audit_events where event_id = $1), coalesce((select chain_position = $3 and event_hash = $4
			from audit_events where tenant_id = $2 order by chain_position desc limit 1), $3 = 0)`, r.event, r.tenant, h.length, h.hash).Scan(&known, &right)
		switch {
		case err != nil:
			return err
		case known:
			r.reason = "the event is in a chain already"
		case !right:
			r.waits = true
			b.broken = append(b.broken, r.tenant)
			b.errs = append(b.errs, fmt.Errorf("%w: tenant %s: its head is not its last event", ErrDamaged, r.tenant))
		}
	}
	return nil
}

// done counts and tells, once the batch is committed.
func (b *batch) done(ctx context.Context) {
	b.Signal("drain: committed")
	b.compared = true
	b.careful = max(0, b.careful-len(b.rows))
	for i := range b.rows {
		switch r := &b.rows[i]; {
		case r.waits:
		case r.reason != "":
			b.quarantined++
			alarm(ctx, "an event is in quarantine", "tenant", r.tenant, "event", r.event, "reason", r.reason)
		default:
			b.drained++
		}
	}
}
