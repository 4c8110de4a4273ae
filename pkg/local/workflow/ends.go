package workflow

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/workflow"
)

const (
	tellLimit = time.Minute // of telling of one end; who is killed in the middle of it is followed by another after that
	tellMost  = 64          // ends that are read at once
)

// end is a run's that is to be told.
type end struct {
	id      int64
	run     workflow.Run
	machine string
	told    int // how often, this one included
}

// tellEnds tells of runs that have ended, until ctx ends.
func (r *run) tellEnds(ctx context.Context) {
	for ctx.Err() == nil {
		next, err := r.tellDue(ctx)
		if err != nil {
			if ctx.Err() == nil {
				slog.ErrorContext(ctx, "the workflow engine cannot read which runs have ended", "error", err)
			}
			next = r.now().Add(afterError)
		}
		pause := round
		if !next.IsZero() {
			pause = min(pause, max(0, next.Sub(r.now())))
		}
		select {
		case <-time.After(pause):
		case <-r.ended:
		case <-ctx.Done():
		}
	}
}

// tellDue tells of all ends that are due, and says when the next one is.
func (r *run) tellDue(ctx context.Context) (next time.Time, err error) {
	for {
		r.signal("tell")
		all, err := r.ends(ctx)
		if err != nil {
			return next, err
		}
		var told []int64
		var again []int64
		var later []time.Time
		for _, e := range all {
			if err := r.tellOne(ctx, e); err != nil {
				if ctx.Err() == nil {
					slog.WarnContext(ctx, "a run's end could not be told and is told again", "machine", e.machine, "run", e.run.ID, "error", err)
				}
				again, later = append(again, e.id), append(later, r.now().Add(min(time.Second<<min(e.told-1, 10), tellLimit)))
				continue
			}
			told = append(told, e.id)
		}
		if len(all) > 0 {
			if err := r.wasTold(context.WithoutCancel(ctx), told, again, later); err != nil {
				return next, err
			}
		}
		if len(all) < tellMost || ctx.Err() != nil {
			break
		}
	}
	err = r.ask(ctx, `select min(tell) from local_workflow.runs`, nil, func(rows pgx.Rows) error {
		var soonest *time.Time
		err := rows.Scan(&soonest)
		if soonest != nil {
			next = *soonest
		}
		return err
	})
	return next, err
}

// ends takes ends that are due.
func (r *run) ends(ctx context.Context) (all []end, err error) {
	err = r.ask(ctx, `update local_workflow.runs r set tell = $2, told = told + 1 from (
			select id from local_workflow.runs where tell <= $1 order by tell limit $3 for update skip locked) due where r.id = due.id
		returning r.id, r.told, `+runColumns, []any{r.now(), r.now().Add(tellLimit), tellMost}, func(rows pgx.Rows) (err error) {
		var e end
		e.run, e.machine, err = r.scanRun(rows, &e.id, &e.told)
		all = append(all, e)
		return err
	})
	return all, err
}

func (r *run) tellOne(ctx context.Context, e end) (err error) {
	ctx, cancel := context.WithTimeout(ctx, tellLimit)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = panicked(p)
		}
	}()
	return r.config.Ended(ctx, e.run, e.machine)
}

func (r *run) wasTold(ctx context.Context, told, again []int64, later []time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, lastWords)
	defer cancel()
	return r.ask(ctx, `with told as (update local_workflow.runs set tell = null where id = any($1::bigint[]))
		update local_workflow.runs r set tell = a.at from unnest($2::bigint[], $3::timestamptz[]) a (id, at) where r.id = a.id returning 1`,
		[]any{told, again, later}, ignored)
}
