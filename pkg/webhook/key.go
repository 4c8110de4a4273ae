package webhook

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/postgres"
)

// keyAge is how long a call is remembered by its Idempotency-Key.
const keyAge = 24 * time.Hour

// CheckKey takes 1 to 255 visible ASCII characters, or "" for a call without a key.
func CheckKey(key string) error {
	if len(key) > 255 {
		return fault.Invalid("Idempotency-Key is longer than 255 characters")
	}
	for _, c := range []byte(key) {
		if c <= ' ' || c > '~' {
			return fault.Invalid("Idempotency-Key must be of visible ASCII characters")
		}
	}
	return nil
}

// takeKey queues the call's key, first of all that the call writes: among several at once, one goes on and the others fail.
func takeKey(b *pgx.Batch, tenantID string, i Invocation, runID string) {
	if i.Key == "" {
		return
	}
	b.Queue(`delete from webhook_keys where webhook_id = $1 and key = $2 and created_at < clock_timestamp() - $3::interval`, i.WebhookID, i.Key, keyAge)
	b.Queue(`insert into webhook_keys (tenant_id, webhook_id, key, run_id) values ($1, $2, $3, $4)`, tenantID, i.WebhookID, i.Key, runID)
}

// sweepSize bounds what one transaction of a sweep deletes.
const sweepSize = 10_000

// SweepKeys forgets the keys that are too old to count, of all tenants.
func SweepKeys(ctx context.Context, db *postgres.DB) error {
	tenants, err := postgres.All(ctx, db.Lookup(), pgx.RowTo[string], `select tenant_id::text from lookup_expired_webhook_keys($1)`, keyAge)
	for _, tenantID := range tenants {
		err = errors.Join(err, sweepTenant(ctx, db, tenantID)) // other tenants must not wait for it
	}
	return err
}

func sweepTenant(ctx context.Context, db *postgres.DB, tenantID string) error {
	for {
		var deleted int64
		err := db.InTenant(ctx, tenantID, func(tx pgx.Tx) error {
			tag, err := tx.Exec(ctx, `delete from webhook_keys where ctid = any(array(
				select ctid from webhook_keys where created_at < clock_timestamp() - $1::interval limit $2))`, keyAge, sweepSize)
			deleted = tag.RowsAffected()
			return err
		})
		if err != nil || deleted < sweepSize {
			return err
		}
	}
}
