package verify

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/audit/merkle"
)

// ledger is what the database says of the writer's work.
type ledger struct {
	open     uint64 // number of the open cadence
	anchored uint64 // the newest anchor that it knows as published; 0: none
	beacon   uint64 // the newest beacon
}

// readLedger reads what whoever has the database may have set to anything, or taken away: that is a finding, and no reason to end.
func (r *run) readLedger(ctx context.Context, s *session) (ledger, error) {
	var open, beacon, anchored int64
	err := s.row(ctx, `select coalesce(max(open_cadence), -1), coalesce(max(beacon_number), -1), coalesce((select max(number) from audit_anchors where anchored_at is not null), 0) from audit_ledger`,
		nil, &open, &beacon, &anchored)
	return ledger{
		open:     r.counted(open, Finding{Class: AnchorDatabase}, "the number of the open cadence"),
		beacon:   r.counted(beacon, Finding{Class: HeadDatabase}, "the number of the newest beacon"),
		anchored: r.counted(anchored, Finding{Class: AnchorDatabase}, "the number of the newest published anchor"),
	}, err
}

// counted is a number of the database that counts something. One that is less than nothing is a finding, and goes as 0.
func (r *run) counted(v int64, f Finding, what string) uint64 {
	if v < 0 {
		f.Detail = fmt.Sprintf("%s in the database is %d, or not there", what, v)
		r.found.add(f)
	}
	return uint64(max(v, 0))
}

// finite is a time's column without infinities and nulls, which no time is made of here.
func finite(column string) string {
	return "least(greatest(" + column + ", '0001-01-01 00:00+00'), '9999-12-31 00:00+00')"
}

// compareAnchors holds what the database remembers of anchors to the bucket.
func (r *run) compareAnchors(ctx context.Context, s *session, h *history) error {
	next := h.lo + 1
	fail := func(n uint64, format string, args ...any) {
		r.found.add(Finding{Class: AnchorDatabase, Cadence: n, Detail: fmt.Sprintf(format, args...)})
	}
	forgotten := func(to uint64) {
		for to = min(to, h.hi+1); next < to; next++ { // whatever number the database has
			if c := h.at(next); c != nil && c.usable {
				fail(next, "%s is in the bucket, and the database does not know the cadence: it was set back, or the row is gone", anchor.CadenceID(next))
			}
		}
	}
	err := s.rows(ctx, fmt.Sprintf(`select number, %s, %s, object_sha256, header_sha256, anchored_at is not null, log_tree from audit_anchors where number > $1 order by number`,
		finite("recorded_at"), finite("window_to")), []any{int64(h.lo)},
		func(rows pgx.Rows) error {
			var n uint64
			var recorded, to time.Time
			var object, header *string
			var published bool
			var log []byte
			if err := rows.Scan(&n, &recorded, &to, &object, &header, &published, &log); err != nil {
				return err
			}
			forgotten(n)
			next = n + 1
			c := h.at(n)
			switch {
			case !r.cfg.Until.IsZero() && n > h.hi:
			case c == nil && published:
				fail(n, "the database has it as published, the bucket has not")
			case c == nil && r.now.Sub(recorded) > 2*max(h.length, time.Minute):
				r.found.notice("%s was closed at %s and is not published yet", anchor.CadenceID(n), stamp(recorded))
			case c == nil || !c.usable: // found missing before
			case !recorded.Equal(c.recorded.time()) || !to.Equal(c.windowTo):
				fail(n, "the database has it as recorded at %s for the window to %s, the anchor says %s and %s", stamp(recorded), stamp(to), c.recorded, stamp(c.windowTo))
			case !published && n == h.hi:
				r.found.notice("%s is published, and the database does not know yet", anchor.CadenceID(n))
			case !published:
				fail(n, "the database does not know that it is published, but a later one is")
			case object == nil || *object != hex.EncodeToString(c.sha256[:]):
				fail(n, "the database has another object's SHA-256")
			case header == nil || *header != hex.EncodeToString(c.header[:]):
				fail(n, "the database has another header's SHA-256")
			case n == h.hi && !sameLog(log, h.log) && r.found.clean():
				fail(n, "the database's state of the log is not that of the anchors")
			}
			return nil
		})
	forgotten(h.hi + 1)
	if err != nil {
		return err
	}
	return s.rows(ctx, `select number from audit_anchors where number < 1 order by number limit 1`, nil, func(rows pgx.Rows) error {
		var n int64
		err := rows.Scan(&n)
		fail(0, "the database has an anchor with the number %d", n)
		return err
	})
}

func sameLog(state []byte, log merkle.Range) bool {
	want, _ := log.MarshalBinary() // never fails
	return bytes.Equal(state, want)
}

// compareHeads holds the writer's own heads to the chains that were read.
func (r *run) compareHeads(ctx context.Context, s *session, chains []ended) error {
	fail := func(id uuid, format string, args ...any) {
		r.found.add(Finding{Class: HeadDatabase, TenantID: id.String(), Detail: fmt.Sprintf(format, args...)})
	}
	i := 0
	unknown := func(until *uuid) {
		for ; i < len(chains) && (until == nil || bytes.Compare(chains[i].id[:], until[:]) < 0); i++ {
			if chains[i].length > 0 {
				fail(chains[i].id, "the chain has %d events, the writer knows no head of it", chains[i].length)
			}
		}
	}
	err := s.rows(ctx, `select tenant_id, coalesce(length, -1), coalesce(event_hash, '') from audit_heads where `+r.ofTenant("tenant_id")+` order by tenant_id`, nil, func(rows pgx.Rows) error {
		var id uuid
		var stored int64
		var hash string
		if err := rows.Scan((*[16]byte)(&id), &stored, &hash); err != nil {
			return err
		}
		length := r.counted(stored, Finding{Class: HeadDatabase, TenantID: id.String()}, "the length of the writer's head")
		unknown(&id)
		switch {
		case i == len(chains) || chains[i].id != id:
			fail(id, "the writer knows a head at position %d, there is no chain", length)
			return nil
		case chains[i].length != length || string(chains[i].hash[:]) != hash:
			fail(id, "the chain ends at position %d with the hash %s, the writer's head is at %d with %s", chains[i].length, chains[i].hash[:], length, hash)
		}
		i++
		return nil
	})
	if err == nil {
		unknown(nil)
	}
	return err
}

// compareAnchored holds the state that the next anchor will start from to the newest anchor.
func (r *run) compareAnchored(ctx context.Context, s *session, h *history) error {
	i, known := 0, h.tenants
	if r.cfg.Tenant != "" {
		known = slices.DeleteFunc(slices.Clone(known), func(t tenant) bool { return t.id.String() != r.cfg.Tenant })
	}
	fail := func(id uuid, detail string) {
		r.found.add(Finding{Class: HeadDatabase, TenantID: id.String(), Detail: "the state of the newest anchor in the database " + detail})
	}
	err := s.rows(ctx, `select tenant_id, coalesce(length, -1), coalesce(event_hash, ''), tree from audit_anchored_heads where `+r.ofTenant("tenant_id")+` order by tenant_id`, nil, func(rows pgx.Rows) error {
		var id uuid
		var stored int64
		var hash string
		var state []byte
		var tree merkle.Range
		if err := rows.Scan((*[16]byte)(&id), &stored, &hash, &state); err != nil {
			return err
		}
		length := r.counted(stored, Finding{Class: HeadDatabase, TenantID: id.String()}, "the length of the anchored head")
		for ; i < len(known) && bytes.Compare(known[i].id[:], id[:]) < 0; i++ {
			fail(known[i].id, "lacks the tenant")
		}
		switch {
		case i == len(known) || known[i].id != id:
			fail(id, "has a tenant that the anchor has not")
			return nil
		case known[i].now.length != length || hex.EncodeToString(known[i].now.hash[:]) != hash:
			fail(id, "has another head than the anchor")
		case tree.UnmarshalBinary(state) != nil || tree.Size() != length || tree.Root() != known[i].now.root:
			fail(id, "has another side tree than the anchor")
		}
		i++
		return nil
	})
	for ; err == nil && i < len(known); i++ {
		fail(known[i].id, "lacks the tenant")
	}
	return err
}

// compareBeacons finds events that no anchor and no beacon tells of, though they are old enough.
func (r *run) compareBeacons(ctx context.Context, s *session, h *history, b *beacons, chains []ended) error {
	var ids []string
	var positions []int64
	ask := func() error {
		err := s.rows(ctx, `select e.tenant_id::text, e.event_id::text, e.chain_position, `+finite("e.recorded_at")+` from unnest($1::uuid[], $2::bigint[]) b (tenant_id, position)
join audit_events e on e.tenant_id = b.tenant_id and e.chain_position = b.position`, []any{ids, positions}, func(rows pgx.Rows) error {
			f := Finding{Class: BeaconLate}
			var at time.Time
			if err := rows.Scan(&f.TenantID, &f.EventID, &f.Position, &at); err != nil { // a position that was asked for
				return err
			}
			if r.now.Sub(at) > r.cfg.MaxBeaconLag {
				f.Detail = fmt.Sprintf("recorded at %s, and neither an anchor nor a beacon tells of it, or of an event after it", stamp(at))
				r.found.add(f)
			}
			return nil
		})
		ids, positions = ids[:0], positions[:0]
		return err
	}
	for _, c := range chains {
		covered := b.lengths[c.id]
		if t := h.tenant(c.id); t != nil {
			covered = max(covered, t.now.length)
		}
		if c.length > covered {
			ids, positions = append(ids, c.id.String()), append(positions, int64(covered)+1)
		}
		if len(ids) >= headsAtOnce {
			if err := ask(); err != nil {
				return err
			}
		}
	}
	if len(ids) == 0 {
		return nil
	}
	return ask()
}
