package clock

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/clock/due"
)

// waiting are the schedules that a machine whose time was ahead may have left waiting for a time that is far off.
const waiting = `select ` + columns + `, made, occurrence, attempts, claim from local_clock.schedules where occurrence > $1 and wake > $1`

const moveBack = `update local_clock.schedules s set made = r.made, occurrence = r.occurrence, wake = r.occurrence, attempts = 0, claim = s.claim + 1
	from unnest($1::text[], $2::bigint[], $3::timestamptz[], $4::timestamptz[]) r (name, claim, made, occurrence) where s.name = r.name and s.claim = r.claim`

// turnBack makes what ran ahead of now, because the machine's time did, due again from now on.
func (r *run) turnBack(ctx context.Context, now time.Time) error {
	return r.db.Unbound(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, waiting, now)
		if err != nil {
			return err
		}
		all, err := pgx.CollectRows(rows, scanClaimed)
		if err != nil {
			return err
		}
		var names []string
		var claims []int64
		var mades, occurrences []time.Time
		for _, c := range all {
			if c.made.After(now) {
				c.made = now.Truncate(time.Second)
			}
			times, err := due.Times(c.schedule, c.made)
			if err != nil { // attempt says so
				continue
			}
			if next, found := times.Next(now); found && next.Before(c.occurrence) {
				names, claims, mades, occurrences = append(names, c.schedule.Name), append(claims, c.claim), append(mades, c.made), append(occurrences, next)
			}
		}
		if len(names) == 0 {
			return nil
		}
		slog.WarnContext(ctx, "the machine's time was ahead: schedules are due again from now on", "schedules", len(names))
		_, err = tx.Exec(ctx, moveBack, names, claims, mades, occurrences)
		return err
	})
}
