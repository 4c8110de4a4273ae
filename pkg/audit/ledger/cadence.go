package ledger

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/ident"
)

// cadence is a closed one, as its row in audit_anchors has it.
type cadence struct {
	number     uint64
	seconds    uint64
	window     anchor.Window
	backfill   *anchor.Window
	recordedAt ident.Time
}

func readCadence(ctx context.Context, tx pgx.Tx, n uint64) (c cadence, err error) {
	c.number = n
	var backfill *time.Time
	err = tx.QueryRow(ctx, `select seconds, window_from, window_to, backfill_from, recorded_at from audit_anchors where number = $1`, n).
		Scan(&c.seconds, &c.window.From, &c.window.To, &backfill, &c.recordedAt)
	if backfill != nil {
		c.backfill = &anchor.Window{From: instant(*backfill), To: c.window.From}
	}
	return c, err
}

// closeCadence ends the open cadence, if a window has ended since the last one was closed and that one has its anchor. What is chained from then on belongs to the
// next.
func (l *Ledger) closeCadence(ctx context.Context) error {
	return l.DB.Unbound(ctx, func(tx pgx.Tx) error {
		l.Signal("close: begun")
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock($1)`, cadenceLock); err != nil {
			return err
		}
		var open uint64
		var newest *time.Time // of all events
		var waits bool
		err := tx.QueryRow(ctx, `select open_cadence, (select max(recorded_at) from audit_heads), exists (select from audit_anchors where anchored_at is null) from audit_ledger`).
			Scan(&open, &newest, &waits)
		if err != nil || waits {
			return err
		}
		last, err := readCadence(ctx, tx, open-1)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		now := l.now()
		c, ended := nextCadence(last, now, l.Interval)
		if !ended {
			return nil
		}
		// Never before an event that it covers, and after the cadence before, whatever the clock does.
		at := latest(now, value(newest))
		if !last.recordedAt.Before(at) {
			at = last.recordedAt.Add(time.Microsecond)
		}
		var w pgx.Batch
		w.Queue(`insert into audit_anchors (number, seconds, window_from, window_to, backfill_from, recorded_at) values ($1, $2, $3, $4, $5, $6)`,
			open, c.seconds, c.window.From, c.window.To, c.backfillFrom(), at)
		w.Queue(`update audit_ledger set open_cadence = $1`, open+1)
		if err := tx.SendBatch(ctx, &w).Close(); err != nil {
			return err
		}
		l.Signal("close: written")
		return nil
	})
}

func (c cadence) backfillFrom() *ident.Time {
	if c.backfill == nil {
		return nil
	}
	return &c.backfill.From
}

// nextCadence is the window that has ended after last, and what was missed before it. Windows end at multiples of the interval since 1970.
func nextCadence(last cadence, now time.Time, interval time.Duration) (c cadence, ended bool) {
	to := time.Unix(0, now.UnixNano()-now.UnixNano()%int64(interval)).UTC()
	c.seconds = anchor.Seconds(interval)
	c.window = anchor.Window{From: instant(to.Add(-interval)), To: instant(to)}
	before := last.window.To
	switch {
	case before.IsZero():
	case !before.Before(to):
		return c, false
	case c.window.From.Before(before.Time):
		c.window.From = before
	case before.Before(c.window.From.Time):
		c.backfill = &anchor.Window{From: before, To: c.window.From}
	}
	return c, true
}
