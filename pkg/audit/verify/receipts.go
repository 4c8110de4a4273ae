package verify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/audit"
)

// checkReceipts looks for the event of each receipt: in a chain, or at least in the outbox.
func (r *run) checkReceipts(ctx context.Context, s *session) error {
	if len(r.cfg.Receipts) > 0 && r.cfg.EmissionKey == nil {
		r.found.unchecked("receipts against the text of their events: no emission key was given, so only their presence is")
	}
	for part := range slices.Chunk(r.cfg.Receipts, 1000) {
		held := map[string]string{}
		ids := make([]string, 0, len(part))
		for _, receipt := range part {
			id, ok := parseUUID(receipt.EventID)
			if !ok {
				return fmt.Errorf("verify: %q in the receipts is not an event id", receipt.EventID)
			}
			held[id.String()] = receipt.Receipt
			ids = append(ids, id.String())
		}
		r.tally.receipts.Add(uint64(len(part)))
		err := s.rows(ctx, `select event_id::text, tenant_id::text, chain_position, canonical from audit_events where event_id = any($1::uuid[])`, []any{ids}, func(rows pgx.Rows) error {
			var f Finding
			var text []byte
			var position int64
			if err := rows.Scan(&f.EventID, &f.TenantID, &position, &text); err != nil {
				return err
			}
			f.Position = uint64(max(position, 0))
			mac, err := hex.DecodeString(held[f.EventID])
			if r.cfg.EmissionKey != nil && (err != nil || !r.sealed(text, mac)) {
				f.Class, f.Detail = ReceiptMismatch, "the receipt's MAC is not of this event's text"
				r.found.add(f)
			}
			delete(held, f.EventID)
			return nil
		})
		if err != nil {
			return err
		}
		if err := r.inOutbox(ctx, s, held); err != nil {
			return err
		}
	}
	return nil
}

// inOutbox looks for the events of receipts that are in no chain.
func (r *run) inOutbox(ctx context.Context, s *session, held map[string]string) error {
	if len(held) == 0 {
		return nil
	}
	var ids []string
	for id := range held {
		ids = append(ids, id)
	}
	waiting := 0
	err := s.rows(ctx, `select event_id::text, tenant_id::text, state from audit_outbox where event_id = any($1::uuid[])`, []any{ids}, func(rows pgx.Rows) error {
		var f Finding
		var state string
		if err := rows.Scan(&f.EventID, &f.TenantID, &state); err != nil {
			return err
		}
		delete(held, f.EventID)
		switch state {
		case "pending":
			waiting++
		case "drained":
			f.Class, f.Detail = ReceiptMissing, "a receipt is held for it, it left the outbox, and it is in no chain"
			r.found.add(f)
		} // one in quarantine is a finding already
		return nil
	})
	for _, id := range ids {
		if _, lost := held[id]; lost && err == nil {
			r.found.add(Finding{Class: ReceiptMissing, EventID: id, Detail: "a receipt is held for it, and it is neither in a chain nor in the outbox"})
		}
	}
	if waiting > 0 {
		r.found.notice("%d events that receipts are held for are still in the outbox", waiting)
	}
	return err
}

// sealed reports whether mac is the emission MAC of a recorded envelope.
func (r *run) sealed(text, mac []byte) bool {
	pending, err := audit.Pending(nil, text)
	return err == nil && hmac.Equal(audit.MAC(r.cfg.EmissionKey, pending), mac)
}

// checkMACs holds every event to the emission MAC that the outbox keeps of it: who has the database, but not the key, can write no event.
func (r *run) checkMACs(ctx context.Context, s *session) error {
	if r.cfg.EmissionKey == nil {
		r.found.unchecked("emission MACs: no emission key was given, so an event that was added with all its traces in the database is found only by who holds receipts")
		return nil
	}
	var may bool
	err := s.row(ctx, `select has_column_privilege('audit_outbox', 'mac', 'select')`, nil, &may)
	if err != nil || !may {
		r.found.unchecked("emission MACs: the database role may not read them")
		return err
	}
	var x row
	wrong := 0
	query := fmt.Sprintf(`select %s, e.canonical, o.mac from audit_events e left join audit_outbox o on o.event_id = e.event_id and o.tenant_id = e.tenant_id where %s`,
		qualified("e"), r.ofTenant("e.tenant_id"))
	return s.copyOut(ctx, query, &binaryCopy{row: func(f [][]byte) error {
		if err := x.read(f[:len(f)-1]); err != nil {
			return err
		}
		mac := f[len(f)-1]
		if mac == nil || r.sealed(x.text, mac) { // that it was never in the outbox is found elsewhere
			return nil
		}
		if wrong++; wrong > noted {
			r.found.dropped()
			return nil
		}
		r.found.add(Finding{Class: MACMismatch, TenantID: x.tenant.String(), EventID: x.event.String(), Position: uint64(max(x.position, 0)), Cadence: uint64(max(x.cadence, 0)),
			Detail: "the emission MAC is not of this text: what was emitted was another event"})
		return nil
	}})
}

// qualified is columns of a named table.
func qualified(table string) string {
	var b bytes.Buffer
	for i, name := range bytes.Split([]byte(columns), []byte(", ")) {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(table + "." + string(name))
	}
	return b.String()
}
