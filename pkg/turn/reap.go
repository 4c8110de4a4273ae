package turn

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/postgres"
)

// reapSize bounds one reaper run's work.
const reapSize = 1000

// Reap dispatches the turns that nobody works on: queued ones whose dispatch was lost, running ones whose attempt died. It returns how many.
func Reap(ctx context.Context, db *postgres.DB, dispatch func(ctx context.Context, tenantID, turnID string) error) (int, error) {
	type due struct{ tenantID, turnID string }
	var turns []due
	err := db.Unbound(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `select tenant_id, turn_id from lookup_due_turns($1)`, reapSize)
		if err != nil {
			return err
		}
		turns = turns[:0]
		var d due
		_, err = pgx.ForEachRow(rows, []any{&d.tenantID, &d.turnID}, func() error {
			turns = append(turns, d)
			return nil
		})
		return err
	})
	dispatched := 0
	for _, t := range turns {
		if failed := dispatch(ctx, t.tenantID, t.turnID); failed != nil {
			err = errors.Join(err, failed) // the others must not wait for it
			continue
		}
		dispatched++
	}
	return dispatched, err
}
