package ledger

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/audit/merkle"
)

// moved is a tenant whose chain may have grown since the last anchor.
type moved struct {
	head     anchor.Head // as of the last anchor, then of the one in the making
	prev     string      // the head's hash, as the next event names it
	anchored uint64      // length as of the last anchor
	tree     merkle.Range
}

// readMoved finds the chains that are longer than their last anchor, and holds each head to its event.
func (w *work) readMoved(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, `select h.tenant_id::text, coalesce(a.length, 0), coalesce(a.event_hash, $1), a.tree,
			exists (select from audit_events e where e.tenant_id = h.tenant_id and e.chain_position = h.length and e.event_hash = h.event_hash)
		from audit_heads h left join audit_anchored_heads a using (tenant_id) where h.length > coalesce(a.length, 0) order by h.tenant_id`, audit.Genesis)
	if err != nil {
		return err
	}
	var m moved
	var tree []byte
	var there bool
	_, err = pgx.ForEachRow(rows, []any{&m.head.TenantID, &m.anchored, &m.prev, &tree, &there}, func() error {
		next := &moved{head: anchor.Head{TenantID: m.head.TenantID, Length: m.anchored}, prev: m.prev, anchored: m.anchored}
		if !there {
			return fmt.Errorf("%w: tenant %s: its head is not its last event", ErrDamaged, m.head.TenantID)
		}
		if tree != nil {
			if err := next.tree.UnmarshalBinary(tree); err != nil || next.tree.Size() != m.anchored {
				return fmt.Errorf("%w: tenant %s: its side tree is not of its chain", ErrDamaged, m.head.TenantID)
			}
		}
		w.moved = append(w.moved, next)
		return nil
	})
	return err
}

// readAgain reads the new events of each chain, holds them to their hashes, and puts them into the bucket. The database is asked for one chain after the other; the
// logs travel beside that.
func (w *work) readAgain(ctx context.Context) (err error) {
	uploads, ctx := errgroup.WithContext(ctx)
	uploads.SetLimit(w.Uploads)
	for _, m := range w.moved {
		log := newSpool()
		if err = w.readChain(ctx, m, log); err != nil {
			err = errors.Join(err, log.close())
			break
		}
		if m.head.Length == m.anchored { // all that is new belongs to the cadence that is open
			continue
		}
		uploads.Go(func() error {
			err := w.putLog(ctx, anchor.EventsKey(m.head.TenantID, w.header.Number), log)
			w.Signal("anchor: log put")
			return errors.Join(err, log.close())
		})
	}
	if failed := uploads.Wait(); failed != nil {
		return failed // else err is only that the others were told to stop
	}
	return err
}

func (w *work) readChain(ctx context.Context, m *moved, log *spool) error {
	return w.DB.Unbound(ctx, func(tx pgx.Tx) error {
		next := &moved{head: m.head, prev: m.prev, anchored: m.anchored, tree: m.tree.Clone()}
		log.reset()
		rows, err := tx.Query(ctx, `select chain_position, event_id, event_hash, prev_hash, canonical from audit_events
			where tenant_id = $1::text::uuid and chain_position > $2 and cadence <= $3 order by chain_position`, m.head.TenantID, m.anchored, w.header.Number)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			text, err := next.append(rows.RawValues())
			if err == nil {
				err = log.line(text)
			}
			if err != nil {
				return err
			}
		}
		*m = *next
		return rows.Err()
	})
}

// append holds a row to the one before it, and its columns to its text.
func (m *moved) append(v [][]byte) (text []byte, err error) {
	wrong := func(what string) error {
		return fmt.Errorf("%w: tenant %s, event %d: %s", ErrDamaged, m.head.TenantID, m.head.Length+1, what)
	}
	if len(v[0]) != 8 || binary.BigEndian.Uint64(v[0]) != m.head.Length+1 {
		return nil, wrong("it is missing")
	}
	text = v[4]
	switch hash := audit.Hash(text, m.prev); {
	case string(v[3]) != m.prev:
		return nil, wrong("it does not name the event before it")
	case string(v[2]) != hash:
		return nil, wrong("its text does not hash to its hash")
	default:
		m.prev = hash
	}
	e, err := audit.ParseEnvelope(text)
	switch {
	case err != nil:
		return nil, wrong(err.Error())
	case e.TenantID != m.head.TenantID || len(v[1]) != len(id{}) || e.EventID != id(v[1]).String():
		return nil, wrong("its columns are not those of its text")
	}
	if _, err := hex.Decode(m.head.EventHash[:], v[2]); err != nil {
		return nil, wrong(err.Error())
	}
	m.head.Length++
	m.tree.Append(anchor.EventLeaf(m.head.EventHash))
	return text, nil
}
