package clock

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/clock"
	"github.com/agentplatform/agentplatform/pkg/clock/due"
	"github.com/agentplatform/agentplatform/pkg/postgres"
)

const channel = "local_clock"

// claimed is an occurrence that this clock delivers, or a later one of the same schedule.
type claimed struct {
	schedule   clock.Schedule
	made       time.Time
	occurrence time.Time
	attempts   int // this one included
	claim      int64
}

// Rows that another clock claims at this moment are skipped, and those that it has claimed are no longer due.
const claim = `with due as (
		select name from local_clock.schedules where wake <= $1 and name <> all($4::text[]) order by wake limit $3 for update skip locked)
	update local_clock.schedules s set wake = $2, attempts = attempts + 1, claim = claim + 1 from due where s.name = due.name
	returning ` + columnsOfS + `, made, occurrence, attempts, claim`

const columnsOfS = `s.name, expression, time_zone, start_at, end_at, enabled, input`

// claim takes up to n due occurrences, and says when the next one of all is due; zero: none.
func (r *run) claim(ctx context.Context, n int) (all []claimed, next time.Time, err error) {
	r.mu.Lock()
	here := slices.AppendSeq([]string{}, maps.Keys(r.names)) // a claim of ours that has ended is ours still: a machine was asleep
	r.mu.Unlock()
	now := r.config.Now()
	err = r.db.Unbound(ctx, func(tx pgx.Tx) error {
		all, next = nil, time.Time{}
		var b pgx.Batch
		b.Queue(`set local synchronous_commit = off`) // a claim that is lost is claimed again
		b.Queue(claim, now, now.Add(r.config.Limit+leaseMargin), n, here).Query(func(rows pgx.Rows) (err error) {
			all, err = pgx.CollectRows(rows, scanClaimed)
			return err
		})
		b.Queue(`select min(wake) from local_clock.schedules where name <> all($1::text[])`, here).QueryRow(func(row pgx.Row) error {
			var soonest *time.Time
			if err := row.Scan(&soonest); err != nil {
				return err
			}
			if soonest != nil {
				next = *soonest
			}
			return nil
		})
		return tx.SendBatch(ctx, &b).Close()
	})
	if err != nil {
		return nil, next, err
	}
	r.mu.Lock()
	for _, c := range all {
		r.names[c.schedule.Name] = true
	}
	r.mu.Unlock()
	return all, next, nil
}

func scanClaimed(from pgx.CollectableRow) (c claimed, err error) {
	var bounds row
	c.schedule.Input = json.RawMessage{}
	err = from.Scan(append(bounds.into(&c.schedule), &c.made, &c.occurrence, &c.attempts, &c.claim)...)
	bounds.bounds(&c.schedule)
	return c, err
}

// result is what becomes of a claimed occurrence: the next one, or the same later.
type result struct {
	name       string
	claim      int64
	occurrence *time.Time
	wake       *time.Time
	attempts   int
}

// attempt delivers an occurrence once.
func (r *run) attempt(ctx context.Context, c claimed) result {
	name := c.schedule.Name
	times, err := due.Times(c.schedule, c.made)
	if err != nil { // Put refuses it
		slog.ErrorContext(ctx, "a schedule of the clock cannot be read", "schedule", name, "error", err)
		return result{name: name, claim: c.claim}
	}
	if last, found := times.Last(c.occurrence, r.config.Now()); found {
		c.occurrence, c.attempts = last, 1
	}
	err = r.call(ctx, c)
	now := r.config.Now()
	retry := now.Add(min(firstPause<<min(c.attempts-1, 10), longPause))
	switch {
	case err == nil:
	case ctx.Err() != nil: // whoever runs next begins with it
		return result{name, c.claim, &c.occurrence, &now, c.attempts - 1}
	case c.attempts >= r.config.Attempts:
		slog.ErrorContext(ctx, "an occurrence is given up", "schedule", name, "due", c.occurrence, "attempts", c.attempts, "error", err)
	default:
		slog.WarnContext(ctx, "an occurrence failed and is tried again", "schedule", name, "due", c.occurrence, "again", retry, "error", err)
		return result{name, c.claim, &c.occurrence, &retry, c.attempts}
	}
	next, more := times.Next(c.occurrence)
	if !more {
		return result{name: name, claim: c.claim}
	}
	return result{name, c.claim, &next, &next, 0}
}

func (r *run) call(ctx context.Context, c claimed) (err error) {
	ctx, cancel := context.WithTimeout(ctx, r.config.Limit)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return r.fire(ctx, c.schedule, c.occurrence)
}

// Who lost the claim, by a Put or because it ran out, changes nothing.
const settle = `update local_clock.schedules s set occurrence = r.occurrence, wake = r.wake, attempts = r.attempts
	from unnest($1::text[], $2::bigint[], $3::timestamptz[], $4::timestamptz[], $5::integer[]) r (name, claim, occurrence, wake, attempts)
	where s.name = r.name and s.claim = r.claim`

// settle writes results as they come, all that are there at a time, until there are no more to come.
func (r *run) settle(ctx context.Context) {
	for first := range r.over {
		results := []result{first}
		for more := true; more && len(results) < 256; {
			select {
			case next, open := <-r.over:
				if more = open; open {
					results = append(results, next)
				}
			default:
				more = false
			}
		}
		for r.write(ctx, results) != nil && ctx.Err() == nil {
			select {
			case <-time.After(afterError):
			case <-ctx.Done():
			}
		}
		r.mu.Lock()
		for _, o := range results {
			delete(r.names, o.name)
		}
		r.mu.Unlock()
		r.Look()
	}
}

func (r *run) write(ctx context.Context, results []result) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	var names []string
	var claims []int64
	var occurrences, wakes []*time.Time
	var attempts []int
	for _, o := range results {
		names, claims = append(names, o.name), append(claims, o.claim)
		occurrences, wakes, attempts = append(occurrences, o.occurrence), append(wakes, o.wake), append(attempts, o.attempts)
	}
	err := r.db.Unbound(ctx, func(tx pgx.Tx) error {
		var b pgx.Batch
		b.Queue(`set local synchronous_commit = off`) // what is lost is delivered once more
		b.Queue(settle, names, claims, occurrences, wakes, attempts)
		return tx.SendBatch(ctx, &b).Close()
	})
	if err != nil {
		slog.ErrorContext(ctx, "the clock cannot write what it has delivered", "occurrences", len(results), "error", err)
	}
	return err
}

// notifications looks whenever the database tells of a schedule, and once at the start, for what was told before.
func (r *run) notifications(ctx context.Context) error {
	config, err := postgres.Config{URL: r.config.URL, Name: "agentplatform clock"}.Connection()
	if err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, `listen `+channel); err != nil {
		return err
	}
	r.Look()
	for {
		if _, err := conn.WaitForNotification(ctx); err != nil {
			return err
		}
		r.Look()
	}
}
