package routine

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/agentplatform/agentplatform/pkg/postgres"
)

const (
	sweepSize  = 100              // of what a sweep asks for at a time
	sweepRest  = 15 * time.Second // before the function's end, when a sweep begins nothing more
	sweepSpan  = 40 * time.Second // that a sweep takes where there is no such end
	sweepLanes = 8                // runs that are settled at a time
)

// sweep launches the runs that were left, ends those whose end nobody told, takes machines away that nobody needs, and deletes what is too old.
func (s *Settler) sweep(ctx context.Context) error {
	until := time.Now().Add(sweepSpan)
	if end, ok := ctx.Deadline(); ok {
		until = end.Add(-sweepRest)
	}
	return errors.Join(s.settleDue(ctx, until), s.retire(ctx, until), s.prune(ctx))
}

func (s *Settler) settleDue(ctx context.Context, until time.Time) error {
	for time.Now().Before(until) {
		due, err := postgres.All(ctx, s.DB.Lookup(), pgx.RowToStructByPos[struct{ TenantID, RunID string }],
			`select tenant_id::text, run_id::text from lookup_due_routine_runs($1)`, sweepSize)
		if err != nil || len(due) == 0 {
			return err
		}
		var lanes errgroup.Group
		lanes.SetLimit(sweepLanes)
		for _, d := range due {
			lanes.Go(func() error {
				if err := s.Settle(ctx, d.TenantID, d.RunID); err != nil {
					slog.WarnContext(ctx, "a routine's run was not settled", "tenant_id", d.TenantID, "routine_run_id", d.RunID, "error", err)
					r, err := GetRun(ctx, s.DB.In(d.TenantID), d.RunID)
					if err == nil {
						err = s.later(ctx, d.TenantID, r) // so that it does not keep the others waiting
					}
					return err
				}
				return nil
			})
		}
		if err := lanes.Wait(); err != nil || len(due) < sweepSize {
			return err
		}
	}
	return nil
}

// retire takes the machines away of versions that are superseded or deleted, and have no run that goes on.
func (s *Settler) retire(ctx context.Context, until time.Time) error {
	for time.Now().Before(until) {
		retired, err := postgres.All(ctx, s.DB.Lookup(), pgx.RowToStructByPos[struct {
			TenantID, RoutineID string
			Version             int
		}], `select tenant_id::text, routine_id::text, version from lookup_retired_routine_versions($1)`, sweepSize)
		if err != nil || len(retired) == 0 {
			return err
		}
		for _, v := range retired {
			var b pgx.Batch
			if err := s.Machines.Delete(ctx, MachineName(v.RoutineID, v.Version)); err != nil { // later, so that it does not keep the others waiting
				slog.WarnContext(ctx, "a routine's state machine was not deleted", "tenant_id", v.TenantID, "routine_id", v.RoutineID, "version", v.Version, "error", err)
				b.Queue(`update routine_versions set retire_after = clock_timestamp() + interval '5 minutes' where routine_id = $1 and version = $2`, v.RoutineID, v.Version)
			} else {
				s.signal("machine deleted")
				b.Queue(`update routine_versions set status = 'gone', retire_after = null where routine_id = $1 and version = $2`, v.RoutineID, v.Version)
			}
			if err := s.DB.Once(ctx, v.TenantID, &b); err != nil {
				return err
			}
		}
		if len(retired) < sweepSize {
			return nil
		}
	}
	return nil
}

// prune deletes runs that have been over for RunAge, and deleted routines without runs.
func (s *Settler) prune(ctx context.Context) error {
	tenants, err := postgres.All(ctx, s.DB.Lookup(), pgx.RowTo[string], `select tenant_id::text from lookup_prunable_routine_tenants($1)`, RunAge)
	if err != nil {
		return err
	}
	for _, tenantID := range tenants {
		var b pgx.Batch
		b.Queue(`delete from routine_runs where id in (select id from routine_runs where finished_at < clock_timestamp() - $1::interval order by finished_at limit 1000)`, RunAge)
		const left = `select d.id from routines d where d.deleted_at is not null and not exists (select from routine_runs r where r.routine_id = d.id)
			and not exists (select from routine_versions v where v.routine_id = d.id and v.retire_after is not null)`
		b.Queue(`delete from routine_versions where routine_id in (` + left + `)`)
		b.Queue(`delete from routines where id in (` + left + ` and not exists (select from routine_versions v where v.routine_id = d.id))`)
		if err := s.DB.OnceRelaxed(ctx, tenantID, &b); err != nil {
			return err
		}
	}
	return nil
}
