package proof

import (
	"context"
	"errors"
	"fmt"
	"sort"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/audit/merkle"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/object"
	"github.com/agentplatform/agentplatform/pkg/postgres"
)

// Anchor is a loaded anchor that many proofs can be built from. It is safe for concurrent use.
type Anchor struct {
	anchor anchor.Anchor
	tree   merkle.Tree   // over all tenants' leaves under proof_root
	path   []merkle.Hash // of the anchor in its log
}

// Load reads anchor n, which must be published.
func Load(ctx context.Context, db *postgres.DB, bucket *object.Bucket, n uint64) (*Anchor, error) {
	var sum string
	var state []byte
	err := db.Unbound(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `select object_sha256, coalesce((select log_tree from audit_anchors where number = $1 - 1), '') from audit_anchors
			where number = $1 and anchored_at is not null`, int64(n)).Scan(&sum, &state)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, fault.Missing("anchor")
	}
	if err != nil {
		return nil, err
	}
	key := anchor.Key(n)
	text, err := bucket.Get(ctx, key, maxAnchor)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %v", ErrDamaged, key, err) //nolint:errorlint // its NotFound is not the caller's
	}
	if anchor.SHA256(text) != sum {
		return nil, fmt.Errorf("%w: %s is not the object that the database knows", ErrDamaged, key)
	}
	a := &Anchor{}
	if a.anchor, err = anchor.Parse(text); err == nil {
		err = a.prepare(state)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, key, err)
	}
	return a, nil
}

// prepare computes what all proofs share. before is the state of the log before the anchor.
func (a *Anchor) prepare(before []byte) error {
	var log merkle.Range
	if len(before) > 0 {
		if err := log.UnmarshalBinary(before); err != nil {
			return err
		}
	}
	c, err := anchor.ParseCheckpoint(a.anchor.Checkpoint)
	if err != nil {
		return err
	}
	a.path = anchor.LogPath(log)
	if log.Size()+1 != c.Size || merkle.VerifyInclusion(anchor.LogLeaf(a.anchor.HeaderSHA256), c.Size-1, c.Size, a.path, c.Root) != nil {
		return errors.New("the database's state of the log before it does not lead to its checkpoint")
	}
	_, _, leaves, err := anchor.Roots(a.anchor.Tenants)
	for _, leaf := range leaves {
		a.tree.Append(leaf)
	}
	return err
}

// index is where the tenant is in the anchor's list.
func (a *Anchor) index(tenantID string) (i int, there bool) {
	list := a.anchor.Tenants
	i = sort.Search(len(list), func(i int) bool { return list[i].TenantID >= tenantID }) // text sorts as the bytes do
	return i, i < len(list) && list[i].TenantID == tenantID
}

// prove puts a proof together. path leads from the event to the side tree's root.
func (a *Anchor) prove(i int, position uint64, text []byte, prev string, path []merkle.Hash) ([]byte, error) {
	t := a.anchor.Tenants[i]
	hash := anchor.EventHash(text, prev)
	if merkle.VerifyInclusion(anchor.EventLeaf(hash), position-1, t.Length, path, t.TreeRoot) != nil {
		return nil, fmt.Errorf("%w: event %d of tenant %s is not in the side tree of %s", ErrDamaged, position, t.TenantID, anchor.CadenceID(a.anchor.Header.Number))
	}
	return anchor.Proof{Event: text, Prev: prev, Position: position, Head: t.EventHash, Length: t.Length, Index: uint64(i), EventPath: path,
		TenantPath: a.tree.Inclusion(uint64(i), a.tree.Size()), LogPath: a.path, Header: a.anchor.Header, Checkpoint: a.anchor.Checkpoint}.Build()
}

// Chain is a tenant's chain as of an anchor, for many proofs of its events. It holds 64 bytes an event, and is safe for concurrent use.
type Chain struct {
	anchor *Anchor
	index  int
	tree   merkle.Tree
}

// Chain reads the hashes of the tenant's chain, which must make the anchored side tree. A tenant that the anchor does not have is NotFound.
func (a *Anchor) Chain(ctx context.Context, db *postgres.DB, tenantID string) (*Chain, error) {
	i, there := a.index(tenantID)
	if !there {
		return nil, fault.Missing("tenant")
	}
	c := &Chain{anchor: a, index: i}
	t := a.anchor.Tenants[i]
	if err := hashes(ctx, db, tenantID, t.Length, c.tree.Append); err != nil {
		return nil, err
	}
	if c.tree.Root() != t.TreeRoot {
		return nil, fmt.Errorf("%w: the chain of tenant %s is not that of %s", ErrDamaged, tenantID, anchor.CadenceID(a.anchor.Header.Number))
	}
	return c, nil
}

// Length is how many events of the chain the anchor covers.
func (c *Chain) Length() uint64 { return c.tree.Size() }

// Prove is the proof file of the event with this position, canonical text and prev_hash.
func (c *Chain) Prove(position uint64, text []byte, prev string) ([]byte, error) {
	if position < 1 || position > c.tree.Size() {
		return nil, fault.Invalid("%s does not cover position %d", anchor.CadenceID(c.anchor.anchor.Header.Number), position)
	}
	return c.anchor.prove(c.index, position, text, prev, c.tree.Inclusion(position-1, c.tree.Size()))
}
