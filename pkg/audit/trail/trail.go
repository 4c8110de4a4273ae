// Package trail reads the events that are in the chains: by filter, by id, by hash, and back along a chain.
//
// What holds:
//   - What an Event says comes from its canonical text alone. The columns beside the text are for finding it.
//   - Nothing is given out that does not hold: each row's text is parsed strictly, hashed again with prev_hash, and compared with event_hash
//     and with every column that repeats a member. A row that fails is an InternalError that names the event and the verifier. This
//     shows edits of one row; what takes the whole chain or the anchors to see is the verifier's.
//   - Rows are never changed, so a reader that goes on from a Cursor in another transaction neither repeats nor loses one; events that are
//     chained meanwhile appear where they occurred.
//
// It reads as a role whose policies span tenants (the compliance reader's); who may ask is the caller's business.
package trail

import (
	"context"
	"fmt"
	"iter"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
)

// Event is an event in its tenant's chain.
type Event struct {
	audit.Envelope
	Position int64  // in the tenant's chain, from 1
	Hash     string // 64 lower-case hex characters
	Prev     string // the event's before it, or audit.Genesis
	Cadence  int64  // number of the anchor that covers it first
}

// Cursor is an event's place in a list.
type Cursor struct {
	OccurredAt ident.Time `json:"o"`
	EventID    string     `json:"e"`
}

// Cursor is e's place in a list.
func (e *Event) Cursor() Cursor { return Cursor{e.OccurredAt, e.EventID} }

const columns = `tenant_id, chain_position, event_id, occurred_at, recorded_at, actor, event_type, event_hash, prev_hash, cadence, canonical`

// scan reads a row and holds it to its text.
func scan(row pgx.CollectableRow) (Event, error) {
	var e Event
	var beside audit.Envelope
	var text []byte
	err := row.Scan(&beside.TenantID, &e.Position, &beside.EventID, &beside.OccurredAt, &beside.RecordedAt, &beside.Actor, &beside.Type, &e.Hash, &e.Prev,
		&e.Cadence, &text)
	if err != nil {
		return Event{}, err
	}
	damaged := func(what string) error {
		return fault.New(fault.InternalError, "the audit event %s is damaged (%s): run audit-verifier verify", beside.EventID, what)
	}
	if audit.Hash(text, e.Prev) != e.Hash {
		return Event{}, damaged("its text does not have its hash")
	}
	if e.Envelope, err = audit.ParseEnvelope(text); err != nil {
		return Event{}, damaged("its text is not an envelope in canonical form")
	}
	if e.TenantID != beside.TenantID || e.EventID != beside.EventID || e.Actor != beside.Actor || e.Type != beside.Type ||
		!e.OccurredAt.Equal(beside.OccurredAt.Time) || !e.RecordedAt.Equal(beside.RecordedAt.Time) {
		return Event{}, damaged("a column differs from its text")
	}
	return e, nil
}

// List yields up to limit events that the filter fits, behind the cursor, newest first: occurred_at descending, then event_id descending.
// One event is in memory at a time. An error is yielded once and ends it.
func List(ctx context.Context, q postgres.Querier, f Filter, after *Cursor, limit int) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		where, args := f.where()
		if after != nil {
			where, args = and(where, args, `(occurred_at, event_id) < (%s, %s)`, after.OccurredAt, after.EventID)
		}
		args = append(args, limit)
		order := fmt.Sprintf(` order by occurred_at desc, event_id desc limit $%d`, len(args))
		rows, err := q.Query(ctx, `select `+columns+` from audit_events where `+where+order, args...)
		if err != nil {
			yield(Event{}, err)
			return
		}
		defer rows.Close()
		for rows.Next() {
			e, err := scan(rows)
			if !yield(e, err) || err != nil {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(Event{}, err)
		}
	}
}

// ByID is the event with this id; none is NotFound.
func ByID(ctx context.Context, q postgres.Querier, eventID string) (Event, error) {
	if !ident.Valid(eventID) {
		return Event{}, fault.Missing("event")
	}
	return postgres.One(ctx, q, "event", scan, `select `+columns+` from audit_events where event_id = $1`, eventID)
}

// ByHash is the event with this hash; none is NotFound.
func ByHash(ctx context.Context, q postgres.Querier, hash string) (Event, error) {
	return postgres.One(ctx, q, "event", scan, `select `+columns+` from audit_events where event_hash = $1`, hash)
}

// Back is the event with this hash and those before it along prev_hash, up to limit of them; no such event is NotFound. A chain that ends before
// its first event shows as one whose last Prev is not audit.Genesis.
func Back(ctx context.Context, q postgres.Querier, hash string, limit int) ([]Event, error) {
	events, err := postgres.All(ctx, q, scan, `with recursive back as (
			select a.*, 1 as step from audit_events a where event_hash = $1
			union all
			select a.*, b.step + 1 from back b join audit_events a on a.event_hash = b.prev_hash and a.tenant_id = b.tenant_id where b.step < $2)
		select `+columns+` from back order by step`, hash, limit)
	if err == nil && len(events) == 0 {
		err = fault.Missing("event")
	}
	return events, err
}

// Anchored is the number of the newest cadence whose anchor is published, 0 before the first. It covers every event whose Cadence is not greater.
func Anchored(ctx context.Context, tx pgx.Tx) (number int64, err error) {
	err = tx.QueryRow(ctx, `select coalesce(max(number), 0) from audit_anchors where anchored_at is not null`).Scan(&number)
	return number, err
}
