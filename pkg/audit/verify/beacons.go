package verify

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
)

// beacons is what the beacons say, as far as they were read.
type beacons struct {
	*run
	h        *history
	session  *session // nil: the heads are not compared with the rows
	number   uint64   // of the newest
	sum      string   // of its bytes; empty: unknown
	before   string   // of the bytes of the one before
	last     *anchor.Beacon
	newest   uint64 // cadence that was open when the newest was made
	newestAt time.Time
	lengths  map[uuid]uint64 // of each chain, as the newest beacon that names it has it
	batch    []toldHead
	absent   []toldHead // heads that the snapshot has no row for
}

// toldHead is a head that a beacon tells.
type toldHead struct {
	anchor.Head
	beacon uint64
}

const (
	headsAtOnce = 4000
	grace       = time.Hour // beacons that the storage had this long before the base's anchor need not be read
)

// beacons begins where an earlier run stopped.
func (r *run) beacons(h *history) *beacons {
	b := &beacons{run: r, h: h, lengths: map[uuid]uint64{}}
	if r.memory != nil {
		b.number, b.sum = r.memory.Beacon.Number, r.memory.Beacon.SHA256
		for _, t := range r.memory.Tenants {
			if t.Beaconed > 0 {
				b.lengths[t.id] = t.Beaconed
			}
		}
	}
	return b
}

// readOn reads the beacons, and compares them with the rows if there is a database.
func (b *beacons) readOn(ctx context.Context) (err error) {
	if b.db != nil && b.chains {
		if b.session, err = b.db.session(ctx); err != nil {
			return err
		}
		defer b.session.close()
	}
	return b.read(ctx)
}

// read reads all beacons after b.number.
func (b *beacons) read(ctx context.Context) error {
	want := entire
	if !b.chains {
		want = onlyLock
	}
	err := b.each(ctx, b.list(ctx), want, func(ctx context.Context, f fetched) error {
		n, _ := anchor.ParseBeaconKey(f.key)
		b.tally.beacons.Add(1)
		if want == onlyLock {
			b.number = n
			return nil
		}
		return b.visit(ctx, n, f)
	})
	if err == nil {
		err = b.lookUp(ctx)
	}
	if err == nil && len(b.absent) > 0 {
		err = b.lookAgain(ctx)
	}
	if err == nil {
		err = b.cadences(ctx)
	}
	return err
}

// list lists the beacons and finds the numbers that are left out. Those from long before the base are not given on.
func (b *beacons) list(ctx context.Context) iter.Seq2[stored, error] {
	return func(yield func(stored, error) bool) {
		after, next := "", b.number+1
		if b.number > 0 {
			after = anchor.BeaconKey(b.number)
		}
		for s, err := range b.run.list(ctx, anchor.BeaconPrefix, after) {
			if err != nil {
				yield(s, err)
				return
			}
			n, ok := anchor.ParseBeaconKey(s.key)
			if !ok {
				b.found.add(Finding{Class: ObjectUnexpected, Key: s.key, Detail: "not the key of a beacon"})
				continue
			}
			if s.version == "" {
				continue
			}
			if n > next {
				b.found.add(Finding{Class: BeaconMissing, Key: anchor.BeaconKey(next), Detail: fmt.Sprintf("beacons %d to %d are not in the bucket, but a later one is", next, n-1)})
			}
			next = n + 1
			if b.h.lo > 0 && s.modified.Before(b.h.base.modified.Add(-grace)) {
				continue
			}
			if !yield(s, nil) {
				return
			}
		}
	}
}

func (b *beacons) visit(ctx context.Context, n uint64, f fetched) error {
	fail := func(class Class, format string, args ...any) {
		b.found.add(Finding{Class: class, Key: f.key, Detail: fmt.Sprintf(format, args...)})
	}
	if f.gone {
		b.number, b.sum, b.last = n, "", nil
		return nil
	}
	beacon, err := anchor.OpenBeacon(f.body, b.cfg.Keys)
	follows, sum := n == b.number+1 && b.sum != "", anchor.SHA256(f.body)
	b.number, b.before, b.sum = n, b.sum, sum
	switch unsigned := errors.Is(err, anchor.ErrSignature); {
	case unsigned && len(b.cfg.Keys) > 0: // whoever wrote it: it says nothing of the chains
		fail(BeaconSignature, "not signed by a given key of the log")
		b.last = nil
		return nil
	case err != nil && !unsigned:
		fail(BeaconInvalid, "not a beacon: %v", err)
		b.last = nil
		return nil
	case beacon.Number != n:
		fail(BeaconInvalid, "it is number %d", beacon.Number)
	}
	b.order(beacon, follows, fail)
	if tolerance := b.cfg.ClockTolerance; tolerance >= 0 {
		if off := beacon.RecordedAt.Sub(f.modified); off > tolerance || -off > tolerance {
			fail(Clock, "says it was recorded at %s, but the storage got it at %s", beacon.RecordedAt, stamp(f.modified))
		}
	}
	b.last = &beacon
	if beacon.Cadence > b.newest {
		b.newest, b.newestAt = beacon.Cadence, beacon.RecordedAt.Time
	}
	return b.heads(ctx, beacon, fail)
}

// order holds a beacon to the one before it.
func (b *beacons) order(beacon anchor.Beacon, follows bool, fail func(Class, string, ...any)) {
	if follows && beacon.Previous != b.before {
		fail(BeaconChain, "previous_sha256 is %s, but the beacon before it has %s", beacon.Previous, b.before)
	}
	if b.last == nil || !follows {
		return
	}
	if beacon.RecordedAt.Before(b.last.RecordedAt.Time) {
		fail(BeaconChain, "recorded at %s, before the beacon before it (%s): the writer's clock went back", beacon.RecordedAt, b.last.RecordedAt)
	}
	if beacon.Cadence < b.last.Cadence {
		fail(BeaconChain, "made in %s, the beacon before it in %s", anchor.CadenceID(beacon.Cadence), anchor.CadenceID(b.last.Cadence))
	}
}

// heads gathers the heads that a beacon tells.
func (b *beacons) heads(ctx context.Context, beacon anchor.Beacon, fail func(Class, string, ...any)) error {
	for _, head := range beacon.Tenants {
		if b.cfg.Tenant != "" && head.TenantID != b.cfg.Tenant {
			continue
		}
		id, _ := parseUUID(head.TenantID)
		if before, told := b.lengths[id]; told && head.Length <= before {
			fail(BeaconChain, "says that tenant %s has %d events, a beacon before it said %d", head.TenantID, head.Length, before)
			continue
		}
		b.lengths[id] = head.Length
		if b.session == nil || beacon.Cadence <= b.h.lo || !b.cfg.Until.IsZero() && beacon.Cadence > b.h.hi {
			continue
		}
		b.batch = append(b.batch, toldHead{head, beacon.Number})
	}
	if len(b.batch) >= headsAtOnce {
		return b.lookUp(ctx)
	}
	return nil
}

// lookUp compares the gathered heads with the rows of the snapshot.
func (b *beacons) lookUp(ctx context.Context) error {
	if len(b.batch) == 0 {
		return nil
	}
	absent, err := b.compare(ctx, b.session, b.batch)
	b.batch = b.batch[:0]
	b.absent = append(b.absent, absent...)
	if err == nil && len(b.absent) >= headsAtOnce {
		err = b.lookAgain(ctx)
	}
	return err
}

// lookAgain looks for heads that the snapshot does not have in what is there now: their beacons may be newer.
func (b *beacons) lookAgain(ctx context.Context) error {
	session, err := b.db.fresh(ctx)
	if err != nil {
		return err
	}
	defer session.close()
	absent, err := b.compare(ctx, session, b.absent)
	for _, head := range absent {
		b.found.add(Finding{Class: BeaconTruncated, TenantID: head.TenantID, Position: head.Length,
			Detail: fmt.Sprintf("beacon %d says that the chain has %d events, the last with the hash %x; there is none at that position", head.beacon, head.Length, head.EventHash)})
	}
	b.absent = b.absent[:0]
	return err
}

// compare gives the heads that have no row.
func (b *beacons) compare(ctx context.Context, s *session, heads []toldHead) (absent []toldHead, err error) {
	if len(heads) == 0 {
		return nil, nil
	}
	tenants, lengths := make([]string, len(heads)), make([]int64, len(heads))
	for i, h := range heads {
		tenants[i], lengths[i] = h.TenantID, int64(h.Length)
	}
	const query = `select b.i - 1, e.event_id::text, e.event_hash from unnest($1::uuid[], $2::bigint[]) with ordinality b (tenant_id, length, i)
left join audit_events e on e.tenant_id = b.tenant_id and e.chain_position = b.length`
	err = s.rows(ctx, query, []any{tenants, lengths}, func(rows pgx.Rows) error {
		var i int64
		var event, hash *string
		if err := rows.Scan(&i, &event, &hash); err != nil {
			return err
		}
		head := heads[i]
		switch want := fmt.Sprintf("%x", head.EventHash); {
		case hash == nil:
			absent = append(absent, head)
		case *hash != want:
			b.found.add(Finding{Class: BeaconMismatch, TenantID: head.TenantID, EventID: *event, Position: head.Length,
				Detail: fmt.Sprintf("beacon %d says that the event at this position has the hash %s, it has %s: this event or one before it was changed", head.beacon, want, *hash)})
		}
		return nil
	})
	return absent, err
}

// cadences holds the newest anchor to the beacons: one that was made in a cadence shows that the one before was closed.
func (b *beacons) cadences(ctx context.Context) error {
	closed := b.newest - 1
	if b.newest == 0 || closed <= b.h.hi || !b.cfg.Until.IsZero() {
		return nil
	}
	if b.db != nil {
		s, err := b.db.fresh(ctx) // the beacon may be newer than the snapshot
		if err != nil {
			return err
		}
		defer s.close()
		l, err := b.readLedger(ctx, s)
		if err != nil {
			return err
		}
		if l.open <= closed {
			b.found.add(Finding{Class: AnchorMissing, Cadence: b.h.hi + 1, Detail: fmt.Sprintf("beacon %d was made when %s had been closed; the bucket has no anchor of it, and the database does not know it",
				b.number, anchor.CadenceID(closed))})
			return nil
		}
	}
	if b.now.Sub(b.newestAt) > b.limit(b.h) {
		b.found.add(Finding{Class: AnchorMissing, Cadence: b.h.hi + 1, Detail: fmt.Sprintf("a beacon of %s was made when %s had been closed; the bucket still has no anchor of it", stamp(b.newestAt), anchor.CadenceID(closed))})
	}
	return nil
}
