package ledger

import (
	"context"
	"crypto/hmac"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/agentplatform/agentplatform/pkg/audit"
)

// id is a UUID as the database sends it.
type id [16]byte

func (i id) String() string {
	var s [36]byte
	hex.Encode(s[0:8], i[0:4])
	hex.Encode(s[9:13], i[4:6])
	hex.Encode(s[14:18], i[6:8])
	hex.Encode(s[19:23], i[8:10])
	hex.Encode(s[24:36], i[10:16])
	s[8], s[13], s[18], s[23] = '-', '-', '-', '-'
	return string(s[:])
}

// UUIDValue lets pgx send it.
func (i id) UUIDValue() (pgtype.UUID, error) { return pgtype.UUID{Bytes: i, Valid: true}, nil }

// ScanUUID lets pgx read it.
func (i *id) ScanUUID(v pgtype.UUID) error {
	if !v.Valid {
		return fmt.Errorf("not a UUID: null")
	}
	*i = v.Bytes
	return nil
}

// row is a row of the outbox.
type row struct {
	at            pgtype.TID
	tenant, event id
	text          []byte // pending envelope; nil: there is none
	mac           []byte

	reason   string // why it goes into quarantine; empty: it does not
	waits    bool   // its tenant's chain is damaged: it stays where it is
	occurred time.Time
	actor    string
	kind     audit.Type
}

// maxBatchBytes bounds the envelopes of a batch; the first is taken whatever its size.
const maxBatchBytes = 8 << 20

// read reads the oldest pending rows, in the order of their commit within each tenant, and what cadence is open.
func (b *batch) read(ctx context.Context, limit int) error {
	// Alone, so that the statements below see what whoever closed a cadence has committed.
	if _, err := b.tx.Exec(ctx, `select pg_advisory_xact_lock($1)`, cadenceLock); err != nil {
		return err
	}
	var beacon, floor *time.Time
	err := b.tx.QueryRow(ctx, `select l.open_cadence, l.beacon_at, a.recorded_at from audit_ledger l left join audit_anchors a on a.number = l.open_cadence - 1`).
		Scan(&b.open, &beacon, &floor)
	if err != nil {
		return err
	}
	b.floor = value(floor)
	if b.beaconDue.IsZero() { // counted from the newest beacon, whoever made it, but never longer than from now
		b.beaconDue = time.Now().Add(min(b.BeaconEvery, b.BeaconEvery-b.now().Sub(value(beacon))))
	}
	rows, err := b.tx.Query(ctx, `select ctid, tenant_id, event_id, mac, envelope from (
			select *, sum(octet_length(envelope)) over (order by position rows between unbounded preceding and 1 preceding) as before from (
				select ctid, position, tenant_id, event_id, mac, envelope from audit_outbox where state = 'pending' and tenant_id <> all ($3) order by position limit $1) o
		) p where before is null or before < $2`, limit, maxBatchBytes, b.broken)
	if err != nil {
		return err
	}
	defer rows.Close()
	b.rows = make([]row, 0, limit)
	for rows.Next() {
		v := rows.RawValues() // binary; valid until the next row
		if len(v[0]) != 6 || len(v[1]) != len(id{}) || len(v[2]) != len(id{}) {
			return fmt.Errorf("ledger: an outbox row of another shape")
		}
		at := pgtype.TID{BlockNumber: binary.BigEndian.Uint32(v[0]), OffsetNumber: binary.BigEndian.Uint16(v[0][4:]), Valid: true}
		b.rows = append(b.rows, row{at: at, tenant: id(v[1]), event: id(v[2]), mac: slices.Clone(v[3]), text: slices.Clone(v[4])})
	}
	return rows.Err()
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// judge looks at each row by itself, on all processors: the chain comes later.
func (b *batch) judge() {
	var workers sync.WaitGroup
	for part := range slices.Chunk(b.rows, len(b.rows)/runtime.GOMAXPROCS(0)+1) {
		workers.Go(func() {
			for i := range part {
				part[i].judge(b.Key)
			}
		})
	}
	workers.Wait()
	for i := range b.rows {
		if reason, ok := b.poison[b.rows[i].event]; ok {
			b.rows[i].reason = reason
		}
	}
}

func (r *row) judge(key []byte) {
	if r.text == nil {
		r.reason = "there is no envelope"
		return
	}
	if !hmac.Equal(audit.MAC(key, r.text), r.mac) {
		r.reason = "the emission MAC is wrong"
		return
	}
	e, err := audit.ParseEnvelope(r.text)
	switch {
	case err != nil:
		r.reason = err.Error()
	case !e.RecordedAt.IsZero():
		r.reason = "the envelope says when it was recorded"
	case e.TenantID != r.tenant.String():
		r.reason = "the envelope is another tenant's"
	case e.EventID != r.event.String():
		r.reason = "the envelope is another event's"
	case strings.ContainsRune(e.Actor, 0):
		r.reason = "the actor holds NUL, which no column takes"
	}
	r.occurred, r.actor, r.kind = e.OccurredAt.Time, e.Actor, e.Type
}
