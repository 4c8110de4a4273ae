package integration

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/secret"
)

// Delete takes an integration away with its secret. Its threads stay, and what waits to be said in them outside is not. The answer is what it was.
func Delete(ctx context.Context, db *postgres.DB, secrets secret.Store, tenantID, id string) (i Integration, err error) {
	err = db.InTenant(ctx, tenantID, func(tx pgx.Tx) (err error) {
		if i, err = one(ctx, tx, id, ` for update`); err != nil {
			return err
		}
		connected, err := postgres.All(ctx, tx, pgx.RowTo[bool], `select true from connections where integration_id = $1 limit 1`, i.ID)
		if err != nil {
			return err
		}
		if len(connected) > 0 {
			return fault.Invalid("users are connected by this integration: their connections must be deleted first")
		}
		_, err = tx.Exec(ctx, `update integration_replies set status = 'failed', next_at = null, lease_id = null, finished_at = clock_timestamp(), error = 'the integration was deleted'
			where integration_id = $1 and next_at is not null`, i.ID)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `delete from integrations where id = $1`, i.ID); err != nil {
			return err
		}
		return drop(ctx, secrets, tenantID, i.ID) // last: what is left after a failure is an integration that can be deleted again
	})
	return i, err
}
