package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/object"
)

// maxBeaconTenants bounds a beacon; the heads that are left are the next one's.
const maxBeaconTenants = 100_000

// makeBeacon tells the bucket of the heads that moved: first there, then in the database that it was told. mine is false when another writer is at work, who
// will do the same.
func (r *run) makeBeacon(ctx context.Context) (mine bool, err error) {
	keys, err := r.key(ctx)
	if err != nil {
		return false, err
	}
	err = r.DB.Unbound(ctx, func(tx pgx.Tx) (err error) {
		if mine, err = lockWriter(ctx, tx); err != nil || !mine {
			return err
		}
		b, err := r.nextBeacon(ctx, tx)
		if err != nil || len(b.Tenants) == 0 {
			return err
		}
		r.Signal("beacon: read")
		text, err := r.publish(ctx, tx, b, keys)
		if err != nil {
			return err
		}
		r.Signal("beacon: put")
		if b, err = anchor.OpenBeacon(text, keys); err != nil {
			return err
		}
		if err := recordBeacon(ctx, tx, b, text); err != nil {
			return err
		}
		r.Signal("beacon: written")
		return nil
	})
	if err == nil && mine {
		r.Signal("beacon: committed")
	}
	return mine, err
}

func (l *Ledger) nextBeacon(ctx context.Context, tx pgx.Tx) (b anchor.Beacon, err error) {
	var last *time.Time
	err = tx.QueryRow(ctx, `select beacon_number + 1, beacon_sha256, beacon_at, open_cadence from audit_ledger`).Scan(&b.Number, &b.Previous, &last, &b.Cadence)
	if err != nil {
		return b, err
	}
	at := latest(l.now(), value(last))
	rows, err := tx.Query(ctx, `select tenant_id::text, length, decode(event_hash, 'hex'), recorded_at from audit_heads where length > beaconed order by tenant_id limit $1`, maxBeaconTenants)
	if err != nil {
		return b, err
	}
	var h anchor.Head
	var hash []byte
	var recorded time.Time
	_, err = pgx.ForEachRow(rows, []any{&h.TenantID, &h.Length, &hash, &recorded}, func() error {
		if copy(h.EventHash[:], hash) != len(h.EventHash) {
			return fmt.Errorf("%w: tenant %s: its head has no hash", ErrDamaged, h.TenantID)
		}
		b.Tenants = append(b.Tenants, h)
		at = latest(at, recorded)
		return nil
	})
	b.RecordedAt = instant(at)
	return b, err
}

// publish puts the beacon, or takes over the one that is there under its number: left by a run that died before the database learned of it.
func (l *Ledger) publish(ctx context.Context, tx pgx.Tx, b anchor.Beacon, keys []anchor.Verifier) (text []byte, err error) {
	text, err = anchor.SealBeacon(ctx, b, l.Signer)
	if err != nil {
		return nil, err
	}
	key := anchor.BeaconKey(b.Number)
	err = l.putJSON(ctx, key, text)
	if !errors.Is(err, object.ErrExists) {
		return text, err
	}
	if text, err = there(ctx, func() ([]byte, error) { return l.get(ctx, key, maxBeacon) }); err != nil {
		return nil, err
	}
	found, err := anchor.OpenBeacon(text, keys)
	if err == nil && (found.Number != b.Number || found.Previous != b.Previous) {
		err = errors.New("it does not follow the beacon before")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrForeign, key, err)
	}
	if err := hold(ctx, tx, key, found.Tenants); err != nil {
		return nil, err
	}
	return text, l.ensureLock(ctx, key)
}

func recordBeacon(ctx context.Context, tx pgx.Tx, b anchor.Beacon, text []byte) error {
	tenants, lengths, _ := columnsOf(b.Tenants)
	var w pgx.Batch
	w.Queue(`update audit_heads h set beaconed = b.length from unnest($1::text[]::uuid[], $2::bigint[]) b (tenant_id, length)
		where h.tenant_id = b.tenant_id and h.beaconed < b.length`, tenants, lengths)
	w.Queue(`update audit_ledger set beacon_number = $1, beacon_sha256 = $2, beacon_at = $3`, b.Number, anchor.SHA256(text), b.RecordedAt.Time)
	return tx.SendBatch(ctx, &w).Close()
}
