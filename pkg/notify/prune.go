package notify

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/postgres"
)

// Kept is how long events are kept: those of a turn after its end, or after it stopped to wait for a person; the others after they happened.
const Kept = time.Hour

// The bounds of a run of Prune.
const (
	pruneSeen    = 1000            // threads looked for at a time
	pruneThreads = 100             // threads a transaction
	pruneBatch   = 1000            // events a thread and transaction
	pruneMost    = 500_000         // events a run, and some more: what is left is the next run's
	pruneAgain   = 5 * time.Minute // until a thread is looked at again where something old must stay
)

// Prune deletes the events that need not be kept, of all tenants, and returns how many. A thread's oldest go first, so that what is kept of it
// has no gaps.
func Prune(ctx context.Context, db *postgres.DB) (pruned int, problems error) {
	for seen := pruneSeen; seen == pruneSeen && pruned < pruneMost && problems == nil; {
		byTenant := map[string][]string{}
		rows, err := db.Lookup().Query(ctx, `select tenant_id, thread_uuid from lookup_prunable_threads($1)`, pruneSeen)
		if err != nil {
			return pruned, err
		}
		var tenantID, threadUUID string
		found, err := pgx.ForEachRow(rows, []any{&tenantID, &threadUUID}, func() error {
			byTenant[tenantID] = append(byTenant[tenantID], threadUUID)
			return nil
		})
		if err != nil {
			return pruned, err
		}
		seen = int(found.RowsAffected())
		for tenantID, threads := range byTenant {
			n, err := pruneTenant(ctx, db, tenantID, threads, pruneMost-pruned)
			pruned += n
			problems = errors.Join(problems, err) // other tenants must not wait for it
		}
	}
	return pruned, problems
}

// pruneTenant deletes of each thread what is old, up to the first event that must stay, and notes when to look again.
func pruneTenant(ctx context.Context, db *postgres.DB, tenantID string, threads []string, most int) (pruned int, err error) {
	for some := range slices.Chunk(threads, pruneThreads) {
		for deleted := pruneBatch; deleted >= pruneBatch; pruned += deleted {
			if pruned >= most {
				return pruned, nil
			}
			if deleted, err = pruneThreadsOnce(ctx, db, tenantID, some); err != nil {
				return pruned, err
			}
		}
		// Not in the transactions above: whoever writes to the thread waits for this one. Whoever wrote to it meanwhile has its events looked at later.
		var b pgx.Batch
		b.Queue(`update thread_sequences s set prune_at = case when left_at is null and s.last = k.last then null else greatest(left_at + $2::interval, now() + $3::interval) end
			from (select o.thread_uuid, o.last, (select e.created_at from thread_events e where e.thread_uuid = o.thread_uuid order by e.sequence limit 1) as left_at
				from thread_sequences o where o.thread_uuid = any($1::uuid[])) k where s.thread_uuid = k.thread_uuid`, some, Kept, pruneAgain)
		if err := db.OnceRelaxed(ctx, tenantID, &b); err != nil {
			return pruned, err
		}
	}
	return pruned, nil
}

// pruneThreadsOnce deletes a batch of each thread's old events. A turn that waits for a person stopped at most ten minutes, its longest time, after
// what it had told.
func pruneThreadsOnce(ctx context.Context, db *postgres.DB, tenantID string, threads []string) (deleted int, err error) {
	err = db.InTenantRelaxed(ctx, tenantID, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `with old as materialized (
				select t.uuid, max(p.sequence) as last from unnest($1::uuid[]) as t (uuid) cross join lateral (
					select o.sequence, bool_or(o.stays) over (order by o.sequence) as stays from (
						select e.sequence, e.created_at >= now() - $2::interval or exists (select from thread_turns r where r.id = e.turn_id
							and (r.finished_at >= now() - $2::interval or r.status in ('queued', 'running')
								or r.status = 'waiting' and e.created_at >= now() - $2::interval - interval '10 minutes')) as stays
						from thread_events e where e.thread_uuid = t.uuid order by e.sequence limit $3) o) p
				where not p.stays group by t.uuid)
			delete from thread_events d using old where d.thread_uuid = old.uuid and d.sequence <= old.last`, threads, Kept, pruneBatch)
		deleted = int(tag.RowsAffected())
		return err
	})
	return deleted, err
}
