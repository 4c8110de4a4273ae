package ledger

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/fault"
)

// Limits on what is read back from the bucket.
const (
	maxAnchor = 1 << 30
	maxBeacon = 64 << 20
)

// compare holds the database to the bucket. Numbers have no gaps, so that the objects after those which the database knows are all that can tell more than it:
// none, or the one that a crash has left, or, over a database that was set back, those that it has forgotten. Each must tell of nothing that is not there.
func (l *Ledger) compare(ctx context.Context, tx pgx.Tx) error {
	keys, err := l.key(ctx)
	if err != nil {
		return err
	}
	var beacon, anchored uint64
	err = tx.QueryRow(ctx, `select beacon_number, coalesce((select max(number) from audit_anchors where anchored_at is not null), 0) from audit_ledger`).Scan(&beacon, &anchored)
	if err != nil {
		return err
	}
	for n := beacon + 1; ; n++ {
		object, err := l.get(ctx, anchor.BeaconKey(n), maxBeacon)
		if isMissing(err) {
			break
		}
		if err == nil {
			err = l.holdBeacon(ctx, tx, object, n, keys)
		}
		if err != nil {
			return err
		}
	}
	for n := anchored + 1; ; n++ {
		object, err := l.get(ctx, anchor.Key(n), maxAnchor)
		if isMissing(err) {
			return nil
		}
		if err == nil {
			err = l.holdAnchor(ctx, tx, object, n, keys)
		}
		if err != nil {
			return err
		}
	}
}

func isMissing(err error) bool {
	var f *fault.Error
	return errors.As(err, &f) && f.Type == fault.NotFound
}

func (l *Ledger) holdBeacon(ctx context.Context, tx pgx.Tx, object []byte, n uint64, keys []anchor.Verifier) error {
	b, err := anchor.OpenBeacon(object, keys)
	if err == nil && b.Number != n {
		err = fmt.Errorf("it says that it is number %d", b.Number)
	}
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrForeign, anchor.BeaconKey(n), err)
	}
	return hold(ctx, tx, anchor.BeaconKey(n), b.Tenants)
}

func (l *Ledger) holdAnchor(ctx context.Context, tx pgx.Tx, object []byte, n uint64, keys []anchor.Verifier) error {
	a, err := anchor.Parse(object)
	if err == nil {
		_, _, err = anchor.OpenCheckpoint(a.Checkpoint, keys)
	}
	if err == nil && a.Header.Number != n {
		err = fmt.Errorf("it says that it is of cadence %d", a.Header.Number)
	}
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrForeign, anchor.Key(n), err)
	}
	// Asked after the object was read: its cadence was closed before it was written.
	c, err := readCadence(ctx, tx, n)
	if errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("%w: %s is there, and its cadence was never closed", ErrRollback, anchor.Key(n))
	}
	if err != nil {
		return err
	}
	if !c.window.From.Equal(a.Header.Window.From.Time) || !c.window.To.Equal(a.Header.Window.To.Time) || !c.recordedAt.Equal(a.Header.RecordedAt.Time) {
		return fmt.Errorf("%w: %s is of a cadence that was closed otherwise", ErrRollback, anchor.Key(n))
	}
	heads := make([]anchor.Head, len(a.Tenants))
	for i, t := range a.Tenants {
		heads[i] = anchor.Head{TenantID: t.TenantID, Length: t.Length, EventHash: t.EventHash}
	}
	return hold(ctx, tx, anchor.Key(n), heads)
}

// hold looks for the events that an object tells of.
func hold(ctx context.Context, tx pgx.Tx, key string, heads []anchor.Head) error {
	tenants, lengths, hashes := columnsOf(heads)
	var tenant string
	var length int64
	err := tx.QueryRow(ctx, `select h.tenant_id::text, h.length from unnest($1::text[]::uuid[], $2::bigint[], $3::text[]) h (tenant_id, length, event_hash)
		where not exists (select from audit_events e where e.tenant_id = h.tenant_id and e.chain_position = h.length and e.event_hash = h.event_hash offset 0)
		order by 1 limit 1`, tenants, lengths, hashes).Scan(&tenant, &length)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: %s tells of event %d of tenant %s, which is not in its chain", ErrRollback, key, length, tenant)
}

func columnsOf(heads []anchor.Head) (tenants []string, lengths []int64, hashes []string) {
	for _, h := range heads {
		tenants, lengths, hashes = append(tenants, h.TenantID), append(lengths, int64(h.Length)), append(hashes, hex.EncodeToString(h.EventHash[:]))
	}
	return tenants, lengths, hashes
}
