package outbox

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"net/http"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/fault"
)

// The lock is taken in a subquery that may not be merged with the rest (offset 0), so it is held before the row's position is drawn: one
// statement, one round trip.
const insert = `insert into audit_outbox (tenant_id, event_id, envelope, mac, body_hash)
select $2::uuid, $3::uuid, $4::text, $5::bytea, $6::bytea from (select pg_advisory_xact_lock($1::bigint) offset 0) as held`

// Record records what happened, in its order, in the transaction that makes it happen. tx is one that InTenant runs. An error must end the transaction.
//
// An event that says no tenant is of the transaction's. What it leaves empty of actor (with its type), source and request id is the caller's of the
// context: its user, by GraphQL.
func (o *Outbox) Record(ctx context.Context, tx pgx.Tx, events ...audit.Event) error {
	t, ok := tx.(*transaction)
	if !ok {
		return errForeign
	}
	for _, e := range events {
		s, err := o.seal(t.fill(ctx, e))
		if err != nil {
			return err
		}
		said := sha256.Sum256(s.text)
		if _, err := tx.Exec(ctx, insert, lock(s.tenantID), s.tenantID, s.eventID, string(s.text), s.mac, o.bodyHash(said[:])); err != nil {
			return err
		}
		*t.recorded = true
	}
	return nil
}

// RecordOnce is Record for callers that try again: they choose the event id and say what they say in bytes of which body is the SHA-256. The
// receipt is the emission MAC in lower-case hex. The same id and body again change nothing and give the first receipt, repeated; the same id
// with another body, or of another tenant, is a ValidationError with status 409. Among concurrent calls one records.
func (o *Outbox) RecordOnce(ctx context.Context, tx pgx.Tx, e audit.Event, body []byte) (receipt string, repeated bool, err error) {
	t, ok := tx.(*transaction)
	if !ok {
		return "", false, errForeign
	}
	s, err := o.seal(t.fill(ctx, e))
	if err != nil {
		return "", false, err
	}
	tag, err := tx.Exec(ctx, insert+` on conflict (event_id) do nothing`,
		lock(s.tenantID), s.tenantID, s.eventID, string(s.text), s.mac, o.bodyHash(body))
	switch {
	case err != nil:
		return "", false, err
	case tag.RowsAffected() == 1:
		*t.recorded = true
		return audit.Receipt(s.mac), false, nil
	}
	receipt, found, err := o.Recorded(ctx, tx, s.eventID, body)
	if err == nil && !found { // it is there, but not for this tenant's eyes
		err = errTaken
	}
	return receipt, err == nil, err
}

var errTaken = fault.Invalid("event_id was used before, for another event").WithStatus(http.StatusConflict)

// Recorded looks an event of the transaction's tenant up: its receipt, if it was recorded with that body; with another one it is the same
// error as RecordOnce's.
func (o *Outbox) Recorded(ctx context.Context, tx pgx.Tx, eventID string, body []byte) (receipt string, found bool, err error) {
	var mac, stored []byte
	err = tx.QueryRow(ctx, `select mac, body_hash from audit_outbox where event_id = $1`, eventID).Scan(&mac, &stored)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return "", false, nil
	case err != nil:
		return "", false, err
	case !hmac.Equal(stored, o.bodyHash(body)):
		return "", true, errTaken
	}
	return audit.Receipt(mac), true, nil
}

// bodyHash is what the row keeps of a body's SHA-256. It is keyed: the body holds what redaction took out, and whoever reads the table could
// otherwise try passwords against it.
func (o *Outbox) bodyHash(body []byte) []byte {
	h := hmac.New(sha256.New, o.config.Key)
	h.Write([]byte("body "))
	h.Write(body)
	return h.Sum(nil)
}
