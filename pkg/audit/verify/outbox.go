package verify

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	quarantineListed = 100 // rows in quarantine that are findings of their own
	lostListed       = 20  // events that are only in the outbox, or only in a chain
)

// ofTenant limits a query to the tenant of the run.
func (r *run) ofTenant(column string) string {
	if r.cfg.Tenant == "" {
		return "true"
	}
	return column + " = '" + r.cfg.Tenant + "'" // a UUID: Run has seen to it
}

// readOutbox looks at what is not in the chains yet, and gives the sum of the ids of all that is.
func (r *run) readOutbox(ctx context.Context, s *session, ids *idRun) error {
	err := s.rows(ctx, `select tenant_id::text, event_id::text, coalesce(reason, ''), `+finite("created_at")+` from audit_outbox where state = 'quarantined' and `+r.ofTenant("tenant_id")+` order by position`, nil,
		func(rows pgx.Rows) error {
			var tenant, event, reason string
			var at time.Time
			if err := rows.Scan(&tenant, &event, &reason, &at); err != nil {
				return err
			}
			if r.tally.quarantined.Add(1) > quarantineListed {
				r.found.dropped()
				return nil
			}
			r.found.add(Finding{Class: Quarantined, TenantID: tenant, EventID: event, Detail: fmt.Sprintf("emitted at %s, kept out of the chain: %s", stamp(at), reason)})
			return nil
		})
	if err != nil {
		return err
	}
	var pending uint64
	var oldest *time.Time
	err = s.row(ctx, `select count(*), min(`+finite("created_at")+`) from audit_outbox where state = 'pending' and `+r.ofTenant("tenant_id"), nil, &pending, &oldest)
	if err != nil {
		return err
	}
	r.tally.outbox.Store(pending)
	if oldest != nil && r.now.Sub(*oldest) > r.cfg.MaxOutboxAge {
		r.found.notice("%d events wait in the outbox, the oldest since %s: is the drainer at work?", pending, stamp(*oldest))
	}
	if !r.everyRow() {
		return nil
	}
	return s.copyOut(ctx, `select event_id from audit_outbox where state = 'drained' and `+r.ofTenant("tenant_id"), &binaryCopy{row: func(f [][]byte) error {
		if len(f) != 1 || len(f[0]) != 16 {
			return errRow
		}
		ids.count(uuid(f[0]))
		return nil
	}})
}

// compareOutbox finds events that left the outbox and are in no chain, and those in a chain that were never in the outbox.
func (r *run) compareOutbox(ctx context.Context, s *session, outbox idSum) {
	if outbox == r.ids.sum {
		return
	}
	listed := 0
	note := func(class Class, detail string) func(pgx.Rows) error {
		return func(rows pgx.Rows) error {
			f := Finding{Class: class, Detail: detail}
			var position int64
			if err := rows.Scan(&f.TenantID, &f.EventID, &position); err != nil {
				return err
			}
			f.Position = uint64(max(position, 0))
			listed++
			r.found.add(f)
			return nil
		}
	}
	// Indexes may hide what they should find.
	err := s.exec(ctx, `set local enable_indexscan = off; set local enable_indexonlyscan = off; set local enable_bitmapscan = off`)
	if err == nil {
		err = s.rows(ctx, fmt.Sprintf(`select o.tenant_id::text, o.event_id::text, 0::bigint from audit_outbox o where o.state = 'drained' and %s
and not exists (select from audit_events e where e.event_id = o.event_id) order by o.position limit %d`, r.ofTenant("o.tenant_id"), lostListed), nil,
			note(EventLost, "it left the outbox for the chain, and is not in it"))
	}
	if err == nil {
		err = s.rows(ctx, fmt.Sprintf(`select e.tenant_id::text, e.event_id::text, e.chain_position from audit_events e where %s
and not exists (select from audit_outbox o where o.event_id = e.event_id and o.state = 'drained') order by e.tenant_id, e.chain_position limit %d`, r.ofTenant("e.tenant_id"), lostListed), nil,
			note(NotEmitted, "it is in the chain, but never left the outbox"))
	}
	if err != nil || listed == 0 {
		class := EventLost
		if outbox.count < r.ids.sum.count {
			class = NotEmitted
		}
		r.found.add(Finding{Class: class, Detail: fmt.Sprintf("%d events left the outbox, %d are in the chains, and they are not the same; which could not be found out (%v)", outbox.count, r.ids.sum.count, err)})
	}
}

// checkUnique finds event ids that are in the log twice.
func (r *run) checkUnique(ctx context.Context, s *session) error {
	var twice []uuid
	err := r.ids.duplicates(func(id uuid) {
		if len(twice) < lostListed {
			twice = append(twice, id)
		} else {
			r.found.dropped()
		}
	})
	if err == nil && r.memory != nil {
		err = r.usedBefore(ctx, s, func(id uuid) {
			if len(twice) < lostListed && !slices.Contains(twice, id) {
				twice = append(twice, id)
			}
		})
	}
	if err != nil {
		return err
	}
	for _, id := range twice {
		if err := r.nameTwice(ctx, s, id); err != nil {
			return err
		}
	}
	return nil
}

// usedBefore finds ids among those of this run that are also those of events which an earlier run read.
func (r *run) usedBefore(ctx context.Context, s *session, found func(uuid)) error {
	const atOnce = 4000
	var some []string
	ask := func() error {
		err := s.rows(ctx, `select e.event_id from unnest($1::uuid[]) i (id) join audit_events e on e.event_id = i.id group by 1 having count(*) > 1`, []any{some}, func(rows pgx.Rows) error {
			var id uuid
			err := rows.Scan((*[16]byte)(&id))
			found(id)
			return err
		})
		some = some[:0]
		return err
	}
	err := r.ids.each(func(id uuid) error {
		if some = append(some, id.String()); len(some) < atOnce {
			return nil
		}
		return ask()
	})
	if err == nil && len(some) > 0 {
		err = ask()
	}
	return err
}

func (r *run) nameTwice(ctx context.Context, s *session, id uuid) error {
	f := Finding{Class: DuplicateEvent, EventID: id.String(), Detail: "in the log more than once:"}
	err := s.exec(ctx, `set local enable_indexscan = off; set local enable_indexonlyscan = off; set local enable_bitmapscan = off`)
	if err != nil {
		return err
	}
	err = s.rows(ctx, `select tenant_id::text, chain_position from audit_events where event_id = $1 order by recorded_at desc, tenant_id, chain_position limit 20`, []any{id.String()}, func(rows pgx.Rows) error {
		var tenant string
		var position int64
		if err := rows.Scan(&tenant, &position); err != nil {
			return err
		}
		if f.TenantID == "" { // the one that was recorded last
			f.TenantID, f.Position = tenant, uint64(max(position, 0))
		}
		f.Detail += fmt.Sprintf(" tenant %s at position %d,", tenant, position)
		return nil
	})
	f.Detail = f.Detail[:len(f.Detail)-1]
	r.found.add(f)
	return err
}

// blocks is how many blocks of the table are counted at a time.
const blocks = 1 << 16

// countRows counts the rows without any index, which could hide some.
func (r *run) countRows(ctx context.Context, s *session) (count uint64, err error) {
	var all int64
	if err := s.row(ctx, `select pg_relation_size('audit_events') / current_setting('block_size')::bigint`, nil, &all); err != nil {
		return 0, err
	}
	for from := int64(0); ; from += blocks {
		where, last := fmt.Sprintf("ctid >= '(%d,0)'", from), from+blocks >= all
		if !last {
			where += fmt.Sprintf(" and ctid < '(%d,0)'", from+blocks)
		}
		var n uint64
		if err := s.row(ctx, `select count(*) from audit_events where `+where, nil, &n); err != nil {
			return 0, err
		}
		if count += n; last {
			return count, nil
		}
	}
}
