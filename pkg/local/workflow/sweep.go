package workflow

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// sweep lets go, at the start and whenever there is a reason to, of what nobody works on any more, and deletes what is old.
func (r *run) sweep(ctx context.Context) {
	var pruned time.Time
	for ctx.Err() == nil {
		err := r.freeDead(ctx)
		more := false
		if err == nil {
			more, err = r.freeStrays(ctx)
		}
		if err == nil && r.now().Sub(pruned) >= pruneEvery {
			pruned = r.now()
			err = r.prune(ctx)
		}
		if err != nil && ctx.Err() == nil {
			slog.ErrorContext(ctx, "the workflow engine cannot sweep", "error", err)
		}
		pause := round
		if err != nil || more {
			pause = afterError
		}
		select {
		case <-time.After(pause):
		case <-r.strays:
		case <-ctx.Done():
		}
	}
}

// freeDead lets go of what was held by those whose connection is gone.
func (r *run) freeDead(ctx context.Context) error {
	freed := 0
	err := r.ask(ctx, `select local_workflow.free_dead($1, $2, $3)`, []any{r.holder, space, r.now()}, func(rows pgx.Rows) error { return rows.Scan(&freed) })
	if freed > 0 {
		slog.InfoContext(ctx, "runs go on that were left", "branches", freed)
		r.Look()
	}
	return err
}

// freeStrays lets go of what is held here and not worked on, if it was so before: somebody may be about to begin. It says that there is some.
func (r *run) freeStrays(ctx context.Context) (more bool, err error) {
	r.mu.Lock()
	here := slices.AppendSeq([]int64{}, maps.Keys(r.here))
	r.mu.Unlock()
	found := map[int64]int64{}
	err = r.ask(ctx, `select id, claim from local_workflow.branches where holder = $1 and id <> all($2::bigint[])`, []any{r.holder, here}, func(rows pgx.Rows) error {
		var id, claim int64
		err := rows.Scan(&id, &claim)
		found[id] = claim
		return err
	})
	if err != nil {
		return false, err
	}
	var ids, claims []int64
	for id, claim := range found {
		if had, is := r.strange[id]; is && had == claim {
			ids, claims = append(ids, id), append(claims, claim)
		}
	}
	r.strange = found
	if len(ids) == 0 {
		return len(found) > 0, nil
	}
	defer r.Look()
	return true, r.ask(ctx, `update local_workflow.branches b set holder = null, wake = $3, claim = b.claim + 1
		from unnest($1::bigint[], $2::bigint[]) s (id, claim) where b.id = s.id and b.claim = s.claim returning 1`, []any{ids, claims, r.now()}, ignored)
}

// leave lets go of all that is left, when the workers are done.
func (r *run) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	err := r.ask(ctx, `with left_here as (update local_workflow.branches set holder = null, wake = $2, claim = claim + 1 where holder = $1 returning 1)
		select pg_notify('`+channel+`', '') from left_here limit 1`, []any{r.holder, r.now()}, ignored)
	if err != nil {
		slog.ErrorContext(ctx, "the workflow engine leaves branches that the next one has to find", "error", err)
	}
}

// prune deletes runs that are over for long, and definitions that nobody needs.
func (r *run) prune(ctx context.Context) error {
	for {
		gone := 0
		err := r.ask(ctx, `with old as (delete from local_workflow.runs where id in (
				select id from local_workflow.runs where ended < $1 order by ended limit 200 for update skip locked) returning id),
			steps as (delete from local_workflow.steps where run in (select id from old))
			select count(*) from old`, []any{r.now().Add(-keep)}, func(rows pgx.Rows) error { return rows.Scan(&gone) })
		if err != nil {
			return err
		}
		if gone == 0 {
			break
		}
	}
	return r.ask(ctx, `delete from local_workflow.definitions d where not exists (select from local_workflow.runs where definition = d.id)
		and not exists (select from local_workflow.machines where definition = d.id and not deleted) returning 1`, nil, ignored)
}
