package integration

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/postgres"
)

// Kept is how long the log has a delivery, and how long what it was taken in by is known: its keys, the replies and task events that are over, the pushes.
const Kept = 90 * 24 * time.Hour

// The bounds of a run and of its transactions.
const (
	batchRows  = 5000
	runTime    = 4 * time.Minute // then no new transaction begins: what is left is the next run's
	stopBefore = 15 * time.Second
)

// old are the tables with something to forget, and the moment of a row that counts.
var old = []struct{ table, at string }{
	{"deliveries", "received_at"},
	{"delivery_keys", "created_at"},
	{"integration_replies", "finished_at"},
	{"task_events", "finished_at"},
	{"pushes", "created_at"},
}

// Prune forgets what is too old, of all tenants, until nothing is left or its time is over. It returns how many rows are gone.
func Prune(ctx context.Context, db *postgres.DB) (rows int64, problems error) {
	end := time.Now().Add(runTime)
	if deadline, ok := ctx.Deadline(); ok && deadline.Add(-stopBefore).Before(end) {
		end = deadline.Add(-stopBefore)
	}
	tenants, err := postgres.All(ctx, db.Lookup(), pgx.RowTo[string], `select tenant_id::text from lookup_prunable_deliveries($1) union select tenant_id::text from lookup_prunable_tasks($1)`, Kept)
	if err != nil {
		return 0, err
	}
	reached := make([]int, len(tenants)) // the table that each tenant is at
	for left := len(tenants); left > 0; {
		for i, tenantID := range tenants { // in turns, so that none waits for the whole of another
			if reached[i] == len(old) {
				continue
			}
			if ctx.Err() != nil || !time.Now().Before(end) {
				return rows, errors.Join(problems, ctx.Err())
			}
			n, err := pruneBatch(ctx, db, tenantID, old[reached[i]].table, old[reached[i]].at)
			rows += n
			switch {
			case err != nil: // others must not wait for it
				problems = errors.Join(problems, err)
				reached[i] = len(old)
			case n < batchRows:
				reached[i]++
			}
			if reached[i] == len(old) {
				left--
			}
		}
	}
	return rows, problems
}

func pruneBatch(ctx context.Context, db *postgres.DB, tenantID, table, at string) (n int64, err error) {
	err = db.InTenantRelaxed(ctx, tenantID, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `delete from `+table+` where ctid = any(array(
			select ctid from `+table+` where `+at+` < clock_timestamp() - $1::interval order by `+at+` limit $2))`, Kept, batchRows)
		n = tag.RowsAffected()
		return err
	})
	return n, err
}
