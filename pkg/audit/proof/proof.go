// Package proof builds proof files: one event, and the hashes that lead it to a signed checkpoint, so that anchor.Check (or any other checker) can verify it with
// the log's public key and nothing else.
//
// What holds:
//   - A proof shows nothing of other tenants but sums and hashes: header, two paths and a checkpoint go along, never the anchor's list.
//   - It is of the first anchors that cover the event, within Near of which the one is taken whose path in the log is shortest: the earliest evidence, in a file that
//     stays small, and the same file again for as long as these anchors are all there are.
//   - What is built leads to the roots that the anchor says, or there is an error: a damaged database gives no proof. The signature is not verified here, for who
//     builds a proof need not hold the key; Check does.
package proof

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/audit/merkle"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/object"
	"github.com/agentplatform/agentplatform/pkg/postgres"
)

// Near is how many anchors after the first that covers an event may be taken instead, for their shorter path in the log: ten days, at four an hour.
const Near = 1024

// ErrDamaged is a database or bucket whose parts do not fit together: verify before anything is proven.
var ErrDamaged = errors.New("proof: database and bucket do not fit together")

const maxAnchor = 1 << 30 // bytes

// event is a row as a proof needs it.
type event struct {
	tenantID string
	position uint64
	prev     string
	text     []byte
	cadence  uint64
}

// Build is the proof file of one event. db is the reader's. An event that no published anchor covers yet is a ValidationError, one that there is not is NotFound.
func Build(ctx context.Context, db *postgres.DB, bucket *object.Bucket, eventID string) ([]byte, error) {
	if !ident.Valid(eventID) {
		return nil, fault.Invalid("the event's id must be a UUID")
	}
	e, err := find(ctx, db, eventID)
	if err != nil {
		return nil, err
	}
	n, err := choose(ctx, db, e.cadence)
	if err != nil {
		return nil, err
	}
	a, err := Load(ctx, db, bucket, n)
	if err != nil {
		return nil, err
	}
	i, ok := a.index(e.tenantID)
	if !ok || e.position > a.anchor.Tenants[i].Length {
		return nil, fmt.Errorf("%w: %s does not cover event %s", ErrDamaged, anchor.CadenceID(n), eventID)
	}
	path := merkle.NewProver(e.position - 1)
	if err := hashes(ctx, db, e.tenantID, a.anchor.Tenants[i].Length, path.Append); err != nil {
		return nil, err
	}
	if path.Root() != a.anchor.Tenants[i].TreeRoot {
		return nil, fmt.Errorf("%w: the chain of tenant %s is not that of %s", ErrDamaged, e.tenantID, anchor.CadenceID(n))
	}
	return a.prove(i, e.position, e.text, e.prev, path.Path())
}

// find reads the event.
func find(ctx context.Context, db *postgres.DB, eventID string) (e event, err error) {
	err = db.Unbound(ctx, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `select tenant_id::text, chain_position, prev_hash, canonical, cadence from audit_events where event_id = $1`, eventID).
			Scan(&e.tenantID, &e.position, &e.prev, &e.text, &e.cadence)
		if !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		var waits bool
		if err := tx.QueryRow(ctx, `select exists (select from audit_outbox where event_id = $1 and state = 'pending')`, eventID).Scan(&waits); err != nil {
			return err
		}
		if waits {
			return fault.Invalid("the event is in no chain yet; it can be proven when an anchor covers it")
		}
		return fault.Missing("event")
	})
	return e, err
}

// choose is the anchor that a proof of an event of this cadence is of.
func choose(ctx context.Context, db *postgres.DB, cadence uint64) (n uint64, err error) {
	var found []uint64
	err = db.Unbound(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `select number from audit_anchors where anchored_at is not null and number >= $1 and number < $1 + $2 order by number`, int64(cadence), Near)
		if err == nil {
			found, err = pgx.CollectRows(rows, pgx.RowTo[uint64])
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	if len(found) == 0 {
		return 0, fault.Invalid("no anchor covers the event yet; one is published every few minutes")
	}
	return shortest(found), nil
}

// shortest is the anchor with the shortest path in its log, of several the first.
func shortest(numbers []uint64) uint64 {
	return slices.MinFunc(numbers, func(a, b uint64) int { return bits.OnesCount64(a-1) - bits.OnesCount64(b-1) })
}

// hashes gives the leaves of the tenant's side tree, in order.
func hashes(ctx context.Context, db *postgres.DB, tenantID string, length uint64, leaf func(merkle.Hash)) error {
	return db.Unbound(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `select event_hash from audit_events where tenant_id = $1 and chain_position <= $2 order by chain_position`, tenantID, int64(length))
		if err != nil {
			return err
		}
		defer rows.Close()
		var hash merkle.Hash
		n := uint64(0)
		for rows.Next() {
			if digits := rows.RawValues()[0]; len(digits) != 2*len(hash) {
				return ErrDamaged
			} else if _, err := hex.Decode(hash[:], digits); err != nil {
				return ErrDamaged
			}
			leaf(anchor.EventLeaf(hash))
			n++
		}
		if err := rows.Err(); err != nil || n == length {
			return err
		}
		return fmt.Errorf("%w: the chain of tenant %s has %d events instead of %d", ErrDamaged, tenantID, n, length)
	})
}
