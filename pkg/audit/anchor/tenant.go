package anchor

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"

	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/audit/canonical"
	"github.com/agentplatform/agentplatform/pkg/audit/merkle"
	"github.com/agentplatform/agentplatform/pkg/ident"
)

// Genesis stands for the hash of what came before where nothing did.
const Genesis = audit.Genesis

// Head is the end of a tenant's chain.
type Head struct {
	TenantID  string // UUID, lower case
	Length    uint64 // events in the chain, at least 1
	EventHash merkle.Hash
}

// Tenant is a head with the root of the tenant's side tree, as an anchor has it.
type Tenant struct {
	TenantID  string // UUID, lower case
	Length    uint64 // events in the chain, at least 1
	EventHash merkle.Hash
	TreeRoot  merkle.Hash // of the tree over all Length event hashes
}

// EventHash is audit.Hash as bytes: of an event whose predecessor has the hash prev (64 hexadecimal characters, or
// Genesis).
func EventHash(event []byte, prev string) merkle.Hash {
	var h merkle.Hash
	d := sha256.New()
	d.Write(event)
	d.Write([]byte(prev))
	d.Sum(h[:0])
	return h
}

// EventLeaf is the leaf of an event in its tenant's side tree.
func EventLeaf(eventHash merkle.Hash) merkle.Hash { return merkle.LeafHash(eventHash[:]) }

// HeadLeaf is the tenant's leaf under merkle_root.
func (t Tenant) HeadLeaf() (merkle.Hash, error) {
	id, err := tenantBytes(t.TenantID)
	return merkle.LeafHash(id[:], t.EventHash[:]), err
}

// ProofLeaf is the tenant's leaf under proof_root.
func (t Tenant) ProofLeaf() (merkle.Hash, error) {
	id, err := tenantBytes(t.TenantID)
	return merkle.LeafHash(id[:], binary.BigEndian.AppendUint64(nil, t.Length), t.EventHash[:], t.TreeRoot[:]), err
}

// Roots are merkle_root and proof_root over tenants, and the leaves under the second (for paths). The tenants must be
// in order, each once.
func Roots(tenants []Tenant) (heads, proof merkle.Hash, proofLeaves []merkle.Hash, err error) {
	if err := inOrder(tenants, func(t Tenant) (string, uint64) { return t.TenantID, t.Length }); err != nil {
		return heads, proof, nil, err
	}
	var tree merkle.Range
	proofLeaves = make([]merkle.Hash, len(tenants))
	for i, t := range tenants {
		leaf, err := t.HeadLeaf()
		if err != nil {
			return heads, proof, nil, err
		}
		tree.Append(leaf)
		if proofLeaves[i], err = t.ProofLeaf(); err != nil {
			return heads, proof, nil, err
		}
	}
	return tree.Root(), merkle.Root(proofLeaves), proofLeaves, nil
}

// inOrder holds a list to ascending ids, each once, and lengths from 1.
func inOrder[T any](list []T, of func(T) (id string, length uint64)) error {
	var last [16]byte
	for i, item := range list {
		id, length := of(item)
		raw, err := tenantBytes(id)
		if err != nil {
			return err
		}
		if i > 0 && bytes.Compare(last[:], raw[:]) >= 0 {
			return fmt.Errorf("tenant %s is out of order", id)
		}
		if length < 1 || length > canonical.MaxInteger {
			return fmt.Errorf("tenant %s: no chain has length %d", id, length)
		}
		last = raw
	}
	return nil
}

func tenantBytes(id string) (raw [16]byte, err error) {
	if !ident.Valid(id) {
		return raw, errors.New("not a tenant id")
	}
	var digits [32]byte
	n := 0
	for i := range len(id) {
		if b := id[i]; b >= 'A' && b <= 'F' {
			return raw, errors.New("not a tenant id")
		} else if b != '-' {
			digits[n] = b
			n++
		}
	}
	_, err = hex.Decode(raw[:], digits[:])
	return raw, err
}

func appendTenants(dst []byte, tenants []Tenant) []byte {
	dst = append(dst, '[')
	for i, t := range tenants {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendHead(dst, Head{t.TenantID, t.Length, t.EventHash})
		dst = appendHash(append(dst, `,"tree_root":`...), t.TreeRoot)
		dst = append(dst, '}')
	}
	return append(dst, ']')
}

func appendHeads(dst []byte, heads []Head) []byte {
	dst = append(dst, '[')
	for i, h := range heads {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendHead(dst, h), '}')
	}
	return append(dst, ']')
}

// appendHead leaves the object open.
func appendHead(dst []byte, h Head) []byte {
	dst = appendHash(append(dst, `{"event_hash":`...), h.EventHash)
	dst = strconv.AppendUint(append(dst, `,"length":`...), h.Length, 10)
	dst = append(dst, `,"tenant_id":"`...)
	return append(append(dst, h.TenantID...), '"')
}

func (c *cursor) tenants() (tenants []Tenant) {
	c.list(func() {
		h := c.head()
		c.literal(`,"tree_root":`)
		tenants = append(tenants, Tenant{h.TenantID, h.Length, h.EventHash, c.hash()})
		c.literal(`}`)
	})
	return tenants
}

func (c *cursor) heads() (heads []Head) {
	c.list(func() {
		heads = append(heads, c.head())
		c.literal(`}`)
	})
	return heads
}

func (c *cursor) head() (h Head) {
	c.literal(`{"event_hash":`)
	h.EventHash = c.hash()
	c.literal(`,"length":`)
	h.Length = c.uint()
	c.literal(`,"tenant_id":`)
	h.TenantID = c.tenant()
	return h
}

func (c *cursor) list(item func()) {
	c.literal(`[`)
	for i := 0; c.err == nil && !c.starts(`]`); i++ {
		if i > 0 {
			c.literal(`,`)
		}
		item()
	}
	c.literal(`]`)
}

func appendHash(dst []byte, h merkle.Hash) []byte {
	dst = hex.AppendEncode(append(dst, '"'), h[:])
	return append(dst, '"')
}
