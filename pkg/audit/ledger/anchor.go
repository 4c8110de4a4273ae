package ledger

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/audit/merkle"
	"github.com/agentplatform/agentplatform/pkg/object"
)

// PublishAnchor finishes the anchor that an earlier call left, if there is one, and then closes the cadence whose window has ended and anchors it. It does nothing
// between two ends of windows.
//
// While an anchor cannot be made no further cadence is closed: after an outage there is one anchor that is late, and the next, which says that it is a backfill and
// covers the time, tells when it was made.
//
// Errors: ErrRollback, ErrForeign, ErrDamaged (nothing was signed), or what database and bucket say.
func (l *Ledger) PublishAnchor(ctx context.Context) error {
	return alarmed(ctx, l.publishAnchors(ctx))
}

func (l *Ledger) publishAnchors(ctx context.Context) error {
	if err := l.DB.Unbound(ctx, func(tx pgx.Tx) error { return l.compare(ctx, tx) }); err != nil {
		return err
	}
	l.Signal("anchor: compared")
	if err := l.publishDue(ctx); err != nil {
		return err
	}
	if err := l.closeCadence(ctx); err != nil {
		return err
	}
	l.Signal("anchor: closed")
	return l.publishDue(ctx)
}

// publishDue anchors each closed cadence that has no anchor yet, the oldest first.
func (l *Ledger) publishDue(ctx context.Context) error {
	for {
		var due *uint64
		err := l.DB.Unbound(ctx, func(tx pgx.Tx) error {
			return tx.QueryRow(ctx, `select min(number) from audit_anchors where anchored_at is null`).Scan(&due)
		})
		if err != nil || due == nil {
			return err
		}
		if err := l.anchor(ctx, *due); err != nil {
			return fmt.Errorf("%s: %w", anchor.CadenceID(*due), err)
		}
	}
}

// work is one anchor in the making.
type work struct {
	*Ledger
	keys    []anchor.Verifier
	cadence cadence
	header  anchor.Header
	log     merkle.Range // of the anchors before
	tenants []anchor.Tenant
	moved   []*moved
}

func (l *Ledger) anchor(ctx context.Context, n uint64) (err error) {
	w := &work{Ledger: l}
	if w.keys, err = l.key(ctx); err != nil {
		return err
	}
	if key, err := anchor.ParseVerifier([]byte(l.WitnessKey), ""); err == nil && key.Witness() {
		w.keys = append(w.keys, key)
	}
	began := l.now()
	due := false
	if err := l.DB.Unbound(ctx, func(tx pgx.Tx) (err error) { due, err = w.begin(ctx, tx, n); return err }); err != nil || !due {
		return err
	}
	l.Signal("anchor: begun")
	if err := w.readAgain(ctx); err != nil {
		return err
	}
	w.merge()
	l.Signal("anchor: logs written")
	text, witnessed, err := w.seal(ctx)
	if err != nil {
		return err
	}
	l.Signal("anchor: sealed")
	if text, witnessed, err = w.publish(ctx, text, witnessed); err != nil {
		return err
	}
	l.Signal("anchor: put")
	a, err := anchor.Parse(text)
	if err != nil {
		return err
	}
	if err := l.DB.Unbound(ctx, func(tx pgx.Tx) error { return w.record(ctx, tx, a, text, witnessed) }); err != nil {
		return err
	}
	l.Signal("anchor: committed")
	slog.InfoContext(ctx, "anchored", "cadence", anchor.CadenceID(n), "tenants", len(w.tenants), "moved", len(w.moved), "events", a.Header.Events,
		"backfill", w.cadence.backfill != nil, "witnessed", witnessed, "took", l.now().Sub(began))
	return nil
}

// begin reads what the anchors before say: the log, and every chain as of then. due is false when somebody else has made this anchor meanwhile.
func (w *work) begin(ctx context.Context, tx pgx.Tx, n uint64) (due bool, err error) {
	*w = work{Ledger: w.Ledger, keys: w.keys}
	if w.cadence, err = readCadence(ctx, tx, n); err != nil {
		return false, err
	}
	c := w.cadence
	w.header = anchor.Header{Backfill: c.backfill, Cadence: c.seconds, Number: n, Previous: anchor.Genesis, RecordedAt: c.recordedAt, Window: c.window}
	var log []byte
	err = tx.QueryRow(ctx, `select object_sha256, log_tree from audit_anchors where number = $1 and anchored_at is not null`, n-1).Scan(&w.header.Previous, &log)
	switch {
	case errors.Is(err, pgx.ErrNoRows) && n == 1:
	case err != nil:
		return false, err
	default:
		if err := w.log.UnmarshalBinary(log); err != nil {
			return false, fmt.Errorf("%w: the log of anchors: %w", ErrDamaged, err)
		}
	}
	if err = w.readAnchored(ctx, tx); err == nil {
		err = w.readMoved(ctx, tx)
	}
	if err != nil {
		return false, err
	}
	// Asked last, for each statement sees what is committed when it begins: if it is due now, nothing that was read above has moved on in between.
	err = tx.QueryRow(ctx, `select anchored_at is null from audit_anchors where number = $1`, n).Scan(&due)
	return due, err
}

func (w *work) readAnchored(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, `select a.tenant_id::text, a.length, decode(a.event_hash, 'hex'), a.tree_root, coalesce(h.length, 0) >= a.length
		from audit_anchored_heads a left join audit_heads h using (tenant_id) order by a.tenant_id`)
	if err != nil {
		return err
	}
	var t anchor.Tenant
	var hash, root []byte
	var there bool
	_, err = pgx.ForEachRow(rows, []any{&t.TenantID, &t.Length, &hash, &root, &there}, func() error {
		if !there || copy(t.EventHash[:], hash) != len(t.EventHash) || copy(t.TreeRoot[:], root) != len(t.TreeRoot) {
			return fmt.Errorf("%w: tenant %s: its chain is shorter than its last anchor", ErrDamaged, t.TenantID)
		}
		w.tenants = append(w.tenants, t)
		return nil
	})
	return err
}

// merge puts the heads that moved among those that did not.
func (w *work) merge() {
	w.moved = slices.DeleteFunc(w.moved, func(m *moved) bool { return m.head.Length == m.anchored })
	for _, m := range w.moved {
		t := anchor.Tenant{TenantID: m.head.TenantID, Length: m.head.Length, EventHash: m.head.EventHash, TreeRoot: m.tree.Root()}
		// The text of an id sorts as its bytes do.
		at, known := slices.BinarySearchFunc(w.tenants, t, func(a, b anchor.Tenant) int { return strings.Compare(a.TenantID, b.TenantID) })
		if known {
			w.tenants[at] = t
		} else {
			w.tenants = slices.Insert(w.tenants, at, t)
		}
	}
}

// publish puts the anchor, or takes over the one that is there: left by a run that died before the database learned of it. That one must say the same.
func (w *work) publish(ctx context.Context, text []byte, witnessed bool) ([]byte, bool, error) {
	key := anchor.Key(w.header.Number)
	err := w.putJSON(ctx, key, text)
	if !errors.Is(err, object.ErrExists) {
		return text, witnessed, err
	}
	found, err := there(ctx, func() ([]byte, error) { return w.get(ctx, key, maxAnchor) })
	if err != nil {
		return nil, false, err
	}
	ours, err := anchor.Parse(text)
	if err != nil {
		return nil, false, err
	}
	theirs, err := anchor.Parse(found)
	if err == nil && (theirs.HeaderSHA256 != ours.HeaderSHA256 || theirs.Header.TenantsSHA256 != ours.Header.TenantsSHA256) {
		err = errors.New("it is not what the database calls for")
	}
	var signed []anchor.Signed
	var checkpoint anchor.Checkpoint
	if err == nil {
		checkpoint, signed, err = anchor.OpenCheckpoint(theirs.Checkpoint, w.keys)
	}
	if err == nil {
		var mine anchor.Checkpoint
		if mine, err = anchor.ParseCheckpoint(ours.Checkpoint); err == nil && mine != checkpoint {
			err = errors.New("its checkpoint is of another log")
		}
	}
	if err != nil {
		return nil, false, fmt.Errorf("%w: %s: %w", ErrForeign, key, err)
	}
	witnessed = slices.ContainsFunc(signed, func(s anchor.Signed) bool { return s.Witness })
	return found, witnessed, w.ensureLock(ctx, key)
}

// record tells the database, at last. Whoever was faster has told it the same.
func (w *work) record(ctx context.Context, tx pgx.Tx, a anchor.Anchor, text []byte, witnessed bool) error {
	log := w.log.Clone()
	log.Append(anchor.LogLeaf(a.HeaderSHA256))
	state, err := log.MarshalBinary()
	if err != nil {
		return err
	}
	tag, err := tx.Exec(ctx, `update audit_anchors set object_sha256 = $2, header_sha256 = $3, log_tree = $4, events = $5, tenants = $6, witnessed = $7, anchored_at = $8
		where number = $1 and anchored_at is null`, a.Header.Number, anchor.SHA256(text), hex.EncodeToString(a.HeaderSHA256[:]), state, a.Header.Events, a.Header.TenantCount, witnessed, w.now())
	if err != nil || tag.RowsAffected() == 0 {
		return err
	}
	var b pgx.Batch
	w.queueHeads(&b)
	if witnessed {
		b.Queue(`update audit_ledger set witnessed_size = greatest(witnessed_size, $1)`, a.Header.Number)
	}
	if b.Len() > 0 {
		if err := tx.SendBatch(ctx, &b).Close(); err != nil {
			return err
		}
	}
	w.Signal("anchor: written")
	return nil
}

func (w *work) queueHeads(b *pgx.Batch) {
	if len(w.moved) == 0 {
		return
	}
	heads := make([]anchor.Head, len(w.moved))
	trees, roots := make([][]byte, len(w.moved)), make([][]byte, len(w.moved))
	for i, m := range w.moved {
		root := m.tree.Root()
		heads[i], roots[i] = m.head, root[:]
		trees[i], _ = m.tree.MarshalBinary() // never fails
	}
	tenants, lengths, hashes := columnsOf(heads)
	b.Queue(`insert into audit_anchored_heads (tenant_id, length, event_hash, tree, tree_root, cadence)
		select *, $6 from unnest($1::text[]::uuid[], $2::bigint[], $3::text[], $4::bytea[], $5::bytea[])
		on conflict (tenant_id) do update set length = excluded.length, event_hash = excluded.event_hash, tree = excluded.tree, tree_root = excluded.tree_root, cadence = excluded.cadence`,
		tenants, lengths, hashes, trees, roots, w.header.Number)
}
