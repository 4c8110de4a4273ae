// Package clock is package clock's clock on one machine: schedules in the platform's own PostgreSQL, and what delivers their occurrences.
//
// What holds:
//   - Schedules survive everything that the database survives. They are in a schema of this package's own, local_clock, which Open makes and brings up
//     to date: a deployment in the cloud has no such tables.
//   - An occurrence is claimed before it is delivered, so it is delivered once, also when several clocks run on one database. A claim ends by itself:
//     what a killed process had claimed is delivered by the next one, once more. After a power cut the last moment's may be, too.
//   - Of the occurrences of one schedule that came due while no clock ran, or while one was still being delivered, the last is delivered, with the
//     instant at which it was due; the rest never are. Whether a late one is run or skipped is the caller's to say: it compares the instant with now.
//   - An occurrence that fails is tried again, later each time, until Attempts or until the next one is due; then it is logged and over.
//   - A Put that changes when a schedule runs, or enables it, begins anew: a rate without a start runs at once, and is counted from then. Any other
//     Put leaves its occurrences as they are.
//   - A machine's time may be wrong: when it is put back, what had run ahead is due again from now on.
//   - A clock that has nothing to do sleeps until the next occurrence of all. It looks once a minute besides, for a machine that was asleep.
package clock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/clock"
	"github.com/agentplatform/agentplatform/pkg/clock/due"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/postgres"
)

// Config says where the schedules are and how their occurrences are delivered.
type Config struct {
	URL      string           // of a PostgreSQL database, as a role that may create a schema in it. Required
	Workers  int              // occurrences that are delivered at a time. Default 16
	Limit    time.Duration    // of one delivery. Default 1 minute
	Attempts int              // deliveries of one occurrence, the first included. Default 11: five minutes, after which a run has been missed
	Now      func() time.Time // tests: the time, which they move on; Look tells the clock. Default time.Now
}

// Clock is a clock.Clock. Close it after the last Run has returned.
type Clock struct {
	config Config
	db     *postgres.DB
	look   chan struct{} // something may be due earlier than thought
}

// Open reaches the database and prepares the tables. Run delivers.
func Open(ctx context.Context, config Config) (*Clock, error) {
	if config.Workers == 0 {
		config.Workers = 16
	}
	if config.Limit == 0 {
		config.Limit = time.Minute
	}
	if config.Attempts == 0 {
		config.Attempts = 11
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	db, err := postgres.Open(ctx, postgres.Config{URL: config.URL, MaxConns: 4, Name: "agentplatform clock"})
	if err != nil {
		return nil, err
	}
	if err := db.Unbound(ctx, func(tx pgx.Tx) error { return postgres.Grow(ctx, tx, "local_clock", versions) }); err != nil {
		db.Close()
		return nil, fmt.Errorf("the clock's tables: %w", err)
	}
	return &Clock{config: config, db: db, look: make(chan struct{}, 1)}, nil
}

// Close closes the connections.
func (c *Clock) Close() { c.db.Close() }

// Look makes Run look at the time and at what is due.
func (c *Clock) Look() {
	select {
	case c.look <- struct{}{}:
	default: // it will
	}
}

// moves are the columns that say when a schedule runs. Whether they are the same decides whether its occurrences go on.
const moves = `(s.expression, s.time_zone, s.start_at, s.end_at, s.enabled) is not distinct from
	(excluded.expression, excluded.time_zone, excluded.start_at, excluded.end_at, excluded.enabled)`

// put tells all clocks on the database, unless nothing was changed.
const put = `with put as (
	insert into local_clock.schedules as s (name, expression, time_zone, start_at, end_at, enabled, input, made, occurrence, wake)
	values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9)
	on conflict (name) do update set expression = excluded.expression, time_zone = excluded.time_zone, start_at = excluded.start_at,
		end_at = excluded.end_at, enabled = excluded.enabled, input = excluded.input,
		made = case when ` + moves + ` then s.made else excluded.made end,
		occurrence = case when ` + moves + ` then s.occurrence else excluded.occurrence end,
		wake = case when ` + moves + ` then s.wake else excluded.wake end,
		attempts = case when ` + moves + ` then s.attempts else 0 end,
		claim = case when ` + moves + ` then s.claim else s.claim + 1 end
	where not (` + moves + `) or s.input <> excluded.input
	returning wake)
	select pg_notify('` + channel + `', '') from put where wake is not null`

// Put implements clock.Clock.
func (c *Clock) Put(ctx context.Context, s clock.Schedule) error {
	made := c.config.Now().Truncate(time.Second)
	s, err := due.Check(s, made)
	if err != nil {
		return err
	}
	var first *time.Time
	if s.Enabled {
		times, err := due.Times(s, made)
		if err != nil {
			return err
		}
		if next, runs := times.Next(made.Add(-1)); runs {
			first = &next
		}
	}
	return c.db.Unbound(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, put, s.Name, s.Expression, s.TimeZone, instant(s.Start), instant(s.End), s.Enabled, string(s.Input), made, first)
		return err
	})
}

// Delete implements clock.Clock.
func (c *Clock) Delete(ctx context.Context, name string) error {
	if !clock.ValidName(name) {
		return ctx.Err()
	}
	return c.db.Unbound(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `delete from local_clock.schedules where name = $1`, name)
		return err
	})
}

// columns are what scan reads.
const columns = `name, expression, time_zone, start_at, end_at, enabled, input`

type row struct{ start, end *time.Time }

func (r *row) into(s *clock.Schedule) []any {
	return []any{&s.Name, &s.Expression, &s.TimeZone, &r.start, &r.end, &s.Enabled, (*[]byte)(&s.Input)}
}

func (r *row) bounds(s *clock.Schedule) {
	if r.start != nil {
		s.Start = r.start.UTC()
	}
	if r.end != nil {
		s.End = r.end.UTC()
	}
}

// Get implements clock.Clock.
func (c *Clock) Get(ctx context.Context, name string) (s clock.Schedule, err error) {
	if !clock.ValidName(name) {
		return s, fmt.Errorf("schedule %q: %w", name, clock.ErrNotFound)
	}
	err = c.db.Unbound(ctx, func(tx pgx.Tx) error {
		var r row
		s.Input = json.RawMessage{}
		if err := tx.QueryRow(ctx, `select `+columns+` from local_clock.schedules where name = $1`, name).Scan(r.into(&s)...); err != nil {
			return err
		}
		r.bounds(&s)
		return nil
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return clock.Schedule{}, fmt.Errorf("schedule %s: %w", name, clock.ErrNotFound)
	}
	return s, err
}

// pageSize is EventBridge Scheduler's.
const pageSize = 100

// List implements clock.Clock, by name: a page's token is its last name.
func (c *Clock) List(ctx context.Context, token *string) (p page.Page[clock.Entry], err error) {
	err = c.db.Unbound(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `select name, enabled from local_clock.schedules where $1::text is null or name > $1 order by name limit $2`, token, pageSize+1)
		if err != nil {
			return err
		}
		p.Items, err = pgx.CollectRows(rows, pgx.RowToStructByPos[clock.Entry])
		return err
	})
	if err == nil && len(p.Items) > pageSize {
		p.Items = p.Items[:pageSize]
		p.NextToken = &p.Items[pageSize-1].Name
	}
	return p, err
}

func instant(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
