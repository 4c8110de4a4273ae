package ledger

import (
	"context"
	"encoding/hex"
	"errors"
	"log/slog"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/audit/merkle"
	"github.com/agentplatform/agentplatform/pkg/audit/witness"
	"github.com/agentplatform/agentplatform/pkg/metric"
)

// seal signs the anchor and, if there is a witness, asks it to do so too. An anchor does not wait for its witness: without an answer it goes out with our signature
// alone, and the next one's proof begins where the witness stands.
func (w *work) seal(ctx context.Context) (text []byte, witnessed bool, err error) {
	var note string
	text, err = anchor.Seal(w.header, w.tenants, w.log, func(size uint64, root merkle.Hash) (_ string, err error) {
		note, err = anchor.SignCheckpoint(ctx, anchor.Checkpoint{Origin: w.Origin, Size: size, Root: root}, w.Signer)
		return note, err
	})
	if err != nil || w.WitnessURL == "" {
		return text, false, err
	}
	lines, err := w.cosign(ctx, text, note)
	var both []byte
	if err == nil {
		w.Signal("anchor: witnessed")
		both, err = anchor.Seal(w.header, w.tenants, w.log, func(uint64, merkle.Hash) (string, error) { return note + lines, nil })
	}
	if err != nil {
		if errors.Is(err, witness.ErrFork) {
			alarm(ctx, "the witness has signed another history", "error", err)
		}
		slog.WarnContext(ctx, "the anchor goes out without its witness", "cadence", anchor.CadenceID(w.header.Number), "error", err)
		figure(ctx, "audit.witness.failed", metric.Count, 1)
		return text, false, nil
	}
	return both, true, nil
}

func (w *work) cosign(ctx context.Context, text []byte, note string) (lines string, err error) {
	key, err := anchor.ParseVerifier([]byte(w.WitnessKey), "")
	if err != nil {
		return "", err
	}
	a, err := anchor.Parse(text)
	if err != nil {
		return "", err
	}
	var known uint64
	var leaves []merkle.Hash
	err = w.DB.Unbound(ctx, func(tx pgx.Tx) (err error) {
		if err = tx.QueryRow(ctx, `select witnessed_size from audit_ledger`).Scan(&known); err != nil {
			return err
		}
		leaves, err = readLog(ctx, tx, w.header.Number)
		return err
	})
	if err != nil {
		return "", err
	}
	leaves = append(leaves, anchor.LogLeaf(a.HeaderSHA256))
	return witness.Witness{URL: w.WitnessURL, Keys: []anchor.Verifier{key}, Timeout: w.PutTimeout}.
		Cosign(ctx, note, known, func(_ context.Context, old uint64) ([]merkle.Hash, error) {
			return merkle.Consistency(leaves, old), nil
		})
}

// readLog is the leaves of the anchors before n.
func readLog(ctx context.Context, tx pgx.Tx, n uint64) ([]merkle.Hash, error) {
	rows, err := tx.Query(ctx, `select header_sha256 from audit_anchors where number < $1 order by number`, n)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (leaf merkle.Hash, err error) {
		var text string
		if err = row.Scan(&text); err != nil {
			return leaf, err
		}
		sum, err := hex.DecodeString(text)
		if err != nil || len(sum) != len(leaf) {
			return leaf, errors.Join(ErrDamaged, err)
		}
		return anchor.LogLeaf(merkle.Hash(sum)), nil
	})
}
