package budget

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/postgres"
)

const (
	meterSize = 10_000 // rows that one transaction adds up
	sweepSize = 1000   // reservations that one run frees
)

// Meter adds up what turns have used, of all tenants, notes the warnings of budgets, and frees what turns hold that are over. Several at once do
// not disturb one another.
func Meter(ctx context.Context, db *postgres.DB) error {
	tenants, err := postgres.All(ctx, db.Lookup(), pgx.RowTo[string], `select tenant_id::text from lookup_unmetered_usage()`)
	for _, tenantID := range tenants {
		err = errors.Join(err, meterTenant(ctx, db, tenantID)) // other tenants must not wait for it
	}
	return errors.Join(err, sweep(ctx, db))
}

func meterTenant(ctx context.Context, db *postgres.DB, tenantID string) error {
	for {
		var rows int
		err := db.InTenant(ctx, tenantID, func(tx pgx.Tx) error {
			return tx.QueryRow(ctx, `select meter_usage($1)`, meterSize).Scan(&rows)
		})
		if err != nil || rows < meterSize {
			return err
		}
	}
}

// sweep is behind the trigger that frees a turn's reservation with its end: it finds what was written past that. What the turn had spent counts
// with its record.
func sweep(ctx context.Context, db *postgres.DB) error {
	type held struct{ TenantID, TurnID string }
	idle, err := postgres.All(ctx, db.Lookup(), pgx.RowToStructByPos[held], `select tenant_id::text, turn_id::text from lookup_idle_reservations($1)`, sweepSize)
	for _, h := range idle {
		err = errors.Join(err, db.InTenant(ctx, h.TenantID, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `delete from budget_reservations where turn_id = $1`, h.TurnID)
			return err
		}))
	}
	return err
}
