package ledger

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/agentplatform/agentplatform/pkg/audit"
)

// head is the end of a tenant's chain.
type head struct {
	length   int64
	hash     string
	recorded time.Time
	moved    bool
}

func (b *batch) readHeads(ctx context.Context) error {
	b.heads = map[id]*head{}
	var tenants []id
	for i := range b.rows {
		if t := b.rows[i].tenant; b.heads[t] == nil {
			b.heads[t] = &head{hash: audit.Genesis}
			tenants = append(tenants, t)
		}
	}
	rows, err := b.tx.Query(ctx, `select tenant_id, length, event_hash, recorded_at from audit_heads where tenant_id = any ($1)`, tenants)
	if err != nil {
		return err
	}
	var tenant id
	var h head
	_, err = pgx.ForEachRow(rows, []any{&tenant, &h.length, &h.hash, &h.recorded}, func() error {
		*b.heads[tenant] = h
		return nil
	})
	return err
}

// columns are a batch's chain rows, column by column: the fastest way in that row-level security leaves (it refuses COPY).
type columns struct {
	tenant    []id
	position  []int64
	event     []id
	occurred  []time.Time
	recorded  []time.Time
	actor     []string
	kind      []string
	hash      []string
	prev      []string
	canonical []string
}

// write chains what is sound, puts aside what is not, and moves the heads: one exchange with the database.
func (b *batch) write(ctx context.Context) error {
	c, drained, err := b.chain()
	if err != nil {
		return err
	}
	var w pgx.Batch
	if len(drained) > 0 {
		w.Queue(insertEvents, c.tenant, c.position, c.event, c.occurred, c.recorded, c.actor, c.kind, c.hash, c.prev, c.canonical, b.open).Exec(all(len(drained)))
		w.Queue(`update audit_outbox set envelope = null, state = 'drained', drained_at = $2 where ctid = any ($1) and state = 'pending'`, drained, b.now()).Exec(all(len(drained)))
		b.queueHeads(&w)
	}
	for i := range b.rows {
		if r := &b.rows[i]; r.reason != "" {
			w.Queue(`update audit_outbox set state = 'quarantined', drained_at = $2, reason = $3 where ctid = $1 and state = 'pending'`, r.at, b.now(), storable(r.reason)).Exec(all(1))
		}
	}
	if w.Len() == 0 {
		return nil
	}
	return b.tx.SendBatch(ctx, &w).Close()
}

// storable is a reason as a text column takes it, whatever of a row it quotes.
func storable(reason string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(reason, "\ufffd"), "\x00", "\ufffd")
}

const insertEvents = `insert into audit_events (tenant_id, chain_position, event_id, occurred_at, recorded_at, actor, event_type, event_hash, prev_hash, canonical, cadence)
	select *, $11 from unnest($1::uuid[], $2::bigint[], $3::uuid[], $4::timestamptz[], $5::timestamptz[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[])`

// chain links the sound rows to their tenants' heads, and moves those.
func (b *batch) chain() (c columns, drained []pgtype.TID, err error) {
	c = columns{tenant: make([]id, 0, len(b.rows)), position: make([]int64, 0, len(b.rows)), event: make([]id, 0, len(b.rows)),
		occurred: make([]time.Time, 0, len(b.rows)), recorded: make([]time.Time, 0, len(b.rows)), actor: make([]string, 0, len(b.rows)), kind: make([]string, 0, len(b.rows)),
		hash: make([]string, 0, len(b.rows)), prev: make([]string, 0, len(b.rows)), canonical: make([]string, 0, len(b.rows))}
	drained = make([]pgtype.TID, 0, len(b.rows))
	now := latest(b.now(), b.floor)
	var text []byte
	for i := range b.rows {
		r := &b.rows[i]
		if r.reason != "" || r.waits {
			continue
		}
		h := b.heads[r.tenant]
		h.recorded = latest(now, h.recorded)
		if text, err = audit.WithRecordedAt(text[:0], r.text, instant(h.recorded)); err != nil {
			return c, nil, fmt.Errorf("ledger: event %s: %w", r.event, err)
		}
		prev := h.hash
		h.length, h.hash, h.moved = h.length+1, audit.Hash(text, prev), true
		c.tenant, c.position, c.event = append(c.tenant, r.tenant), append(c.position, h.length), append(c.event, r.event)
		c.occurred, c.recorded = append(c.occurred, r.occurred), append(c.recorded, h.recorded)
		c.actor, c.kind = append(c.actor, r.actor), append(c.kind, string(r.kind))
		c.hash, c.prev, c.canonical = append(c.hash, h.hash), append(c.prev, prev), append(c.canonical, string(text))
		drained = append(drained, r.at)
	}
	return c, drained, nil
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

func (b *batch) queueHeads(w *pgx.Batch) {
	var tenants []id
	var lengths []int64
	var hashes []string
	var recorded []time.Time
	for tenant, h := range b.heads {
		if h.moved {
			tenants, lengths, hashes, recorded = append(tenants, tenant), append(lengths, h.length), append(hashes, h.hash), append(recorded, h.recorded)
		}
	}
	w.Queue(`insert into audit_heads (tenant_id, length, event_hash, recorded_at) select * from unnest($1::uuid[], $2::bigint[], $3::text[], $4::timestamptz[])
		on conflict (tenant_id) do update set length = excluded.length, event_hash = excluded.event_hash, recorded_at = excluded.recorded_at`,
		tenants, lengths, hashes, recorded).Exec(all(len(tenants)))
}

// all refuses a statement that did not change as many rows as it should have: somebody else is at the outbox.
func all(want int) func(pgconn.CommandTag) error {
	return func(tag pgconn.CommandTag) error {
		if tag.RowsAffected() != int64(want) {
			return fmt.Errorf("ledger: %d rows changed instead of %d", tag.RowsAffected(), want)
		}
		return nil
	}
}
