package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/metric"
	"github.com/agentplatform/agentplatform/pkg/object"
)

// How late something may be before a person is told. An event waits for a wake, or for the sweep once a minute; a beacon for the drainer; an anchor for its window.
const (
	maxPending   = 3 * time.Minute
	maxUntold    = 3 * time.Minute
	missedAnchor = 1 // intervals beyond the one in which an anchor is made
)

// health is what Watch finds.
type health struct {
	pending, quarantined, untold int64
	oldest, oldestUntold         *time.Time // event in the outbox; head that no beacon tells of
	first, last                  *time.Time // event of all chains; end of the newest window that has an anchor
	anchored, beacon             uint64     // numbers of the newest
	anchorHash, beaconHash       string
}

// Watch looks at the ledger from the side: it writes nothing, tells figures, and tells a person of what is late or wrong. It fails when it cannot look.
func (l *Ledger) Watch(ctx context.Context) error {
	var h health
	if err := l.DB.Unbound(ctx, func(tx pgx.Tx) error { return h.read(ctx, tx) }); err != nil {
		return err
	}
	now := l.now()
	pending, untold, late := since(now, h.oldest), since(now, h.oldestUntold), h.lateness(now, l.Interval)
	figure(ctx, "audit.pending", metric.Count, float64(h.pending))
	figure(ctx, "audit.pending.age", metric.Seconds, pending.Seconds())
	figure(ctx, "audit.quarantined", metric.Count, float64(h.quarantined))
	figure(ctx, "audit.beacon.age", metric.Seconds, untold.Seconds())
	figure(ctx, "audit.anchor.lateness", metric.Seconds, late.Seconds())
	if pending > maxPending {
		alarm(ctx, "events are not being drained", "pending", h.pending, "age", pending)
	}
	if h.quarantined > 0 {
		alarm(ctx, "events are in quarantine", "events", h.quarantined)
	}
	if untold > maxUntold {
		alarm(ctx, "no beacon tells of the newest events", "tenants", h.untold, "age", untold)
	}
	if late > missedAnchor*l.Interval {
		alarm(ctx, "anchors are not being published", "late", late, "last", h.anchored)
	}
	return errors.Join(l.newest(ctx, anchor.Key(h.anchored), h.anchored, h.anchorHash, maxAnchor), l.newest(ctx, anchor.BeaconKey(h.beacon), h.beacon, h.beaconHash, maxBeacon))
}

func (h *health) read(ctx context.Context, tx pgx.Tx) error {
	return tx.QueryRow(ctx, `select
			(select count(*) from audit_outbox where state = 'pending'),
			(select created_at from audit_outbox where state = 'pending' order by position limit 1),
			(select count(*) from audit_outbox where state = 'quarantined'),
			(select count(*) from audit_heads where length > beaconed),
			(select min(recorded_at) from audit_heads where length > beaconed),
			(select min(recorded_at) from audit_heads),
			coalesce(a.number, 0), a.window_to, coalesce(a.object_sha256, ''), l.beacon_number, l.beacon_sha256
		from audit_ledger l left join lateral (select * from audit_anchors where anchored_at is not null order by number desc limit 1) a on true`).
		Scan(&h.pending, &h.oldest, &h.quarantined, &h.untold, &h.oldestUntold, &h.first, &h.anchored, &h.last, &h.anchorHash, &h.beacon, &h.beaconHash)
}

func since(now time.Time, then *time.Time) time.Duration {
	if then == nil {
		return 0
	}
	return max(0, now.Sub(*then))
}

// lateness is how long ago the next anchor should have been there. Before the first there must be something to anchor.
func (h *health) lateness(now time.Time, interval time.Duration) time.Duration {
	last := h.last
	if last == nil {
		last = h.first
	}
	if last == nil {
		return 0
	}
	return max(0, now.Sub(*last)-interval)
}

// newest looks whether the newest object that the database knows of is in the bucket, the same, and locked.
func (l *Ledger) newest(ctx context.Context, key string, n uint64, hash string, limit int64) error {
	if n == 0 {
		return nil
	}
	text, err := l.get(ctx, key, limit)
	wrong := ""
	switch {
	case isMissing(err):
		wrong = "it is gone"
	case err != nil:
		return fmt.Errorf("watch %s: %w", key, err)
	case anchor.SHA256(text) != hash:
		wrong = "it has other bytes than were written"
	default:
		mode, until, err := l.Bucket.Lock(ctx, key, "")
		if err != nil {
			return fmt.Errorf("watch %s: %w", key, err)
		}
		if mode != object.Compliance || !until.After(l.now()) {
			wrong = "it is not locked"
		}
	}
	if wrong != "" {
		alarm(ctx, "the write-once bucket has been changed", "object", key, "what", wrong)
	}
	return nil
}
