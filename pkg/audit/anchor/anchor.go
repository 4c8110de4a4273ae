package anchor

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/agentplatform/agentplatform/pkg/audit/canonical"
	"github.com/agentplatform/agentplatform/pkg/audit/merkle"
)

// Anchor is an anchor object: {"header":…,"tenants":[…],"checkpoint":"…"}, the three in this order and nothing after
// them. Its members are canonical texts; the object itself is not (the order is not the alphabet's), so that a reader
// has the small header before the long list.
type Anchor struct {
	Header       Header
	HeaderSHA256 merkle.Hash // of the header's text; LogLeaf of it is the anchor's leaf in the log
	Tenants      []Tenant    // all that have a chain, ascending by the bytes of their id
	Checkpoint   string      // signed note over the log up to and with this anchor
}

// Seal writes the anchor after those in log. It fills the header's MerkleRoot, ProofRoot, TenantCount, TenantsSHA256
// and Events from tenants, then asks sign for the note over the log with this anchor in it: SignCheckpoint, to which
// witnesses may have added their lines. log is left as it was.
func Seal(h Header, tenants []Tenant, log merkle.Range, sign func(size uint64, root merkle.Hash) (note string, err error)) ([]byte, error) {
	text := appendTenants(nil, tenants)
	err := h.fill(tenants, text)
	if err == nil && h.Number != log.Size()+1 {
		err = fmt.Errorf("number %d does not follow a log of %d", h.Number, log.Size())
	}
	if err != nil {
		return nil, fmt.Errorf("anchor: seal: %w", err)
	}
	object := append(make([]byte, 0, 1024+len(text)+len(tenants)*256), `{"header":`...)
	object = h.Append(object)
	sum := sha256.Sum256(object[len(`{"header":`):])
	object = append(object, `,"tenants":`...)
	object = append(object, text...)

	next := log.Clone()
	next.Append(LogLeaf(sum))
	note, err := sign(next.Size(), next.Root())
	if err != nil {
		return nil, fmt.Errorf("anchor: sign: %w", err)
	}
	if c, _, err := splitNote(note); err != nil || c.Size != next.Size() || c.Root != next.Root() {
		return nil, errors.Join(errors.New("anchor: the note is not of this log"), err)
	}
	object = append(object, `,"checkpoint":`...)
	object, err = canonical.AppendString(object, note)
	if err != nil {
		return nil, fmt.Errorf("anchor: seal: %w", err)
	}
	return append(object, '}'), nil
}

// fill computes what tenants, whose list has this text, say.
func (h *Header) fill(tenants []Tenant, text []byte) (err error) {
	h.MerkleRoot, h.ProofRoot, _, err = Roots(tenants)
	if err != nil {
		return err
	}
	h.TenantsSHA256, h.TenantCount, h.Events = sha256.Sum256(text), uint64(len(tenants)), 0
	for _, t := range tenants {
		h.Events += t.Length
		if h.Events > canonical.MaxInteger {
			return errors.New("too many events")
		}
	}
	return h.check()
}

// Parse reads an anchor object: exactly the bytes that Seal writes for what is in them, all roots, counts and hashes
// computed again, the checkpoint's size being the header's number. It does not verify signatures (OpenCheckpoint does)
// nor that the checkpoint's root is the log's, which takes the anchors before.
func Parse(object []byte) (Anchor, error) {
	var a Anchor
	c := &cursor{text: object}
	c.literal(`{"header":`)
	start := c.at
	a.Header = c.header()
	a.HeaderSHA256 = sha256.Sum256(object[start:c.at])
	c.literal(`,"tenants":`)
	start = c.at
	a.Tenants = c.tenants()
	text := object[start:c.at]
	c.literal(`,"checkpoint":`)
	a.Checkpoint = c.string()
	c.literal(`}`)
	err := c.end()
	if err == nil {
		err = a.check(text)
	}
	if err != nil {
		return Anchor{}, fmt.Errorf("anchor: %w", err)
	}
	return a, nil
}

func (a Anchor) check(tenants []byte) error {
	want := a.Header
	if err := want.fill(a.Tenants, tenants); err != nil {
		return err
	}
	switch got := a.Header; {
	case got.TenantsSHA256 != want.TenantsSHA256:
		return errors.New("tenants_sha256 is not of these tenants")
	case got.MerkleRoot != want.MerkleRoot:
		return errors.New("merkle_root is not of these tenants")
	case got.ProofRoot != want.ProofRoot:
		return errors.New("proof_root is not of these tenants")
	case got.TenantCount != want.TenantCount:
		return errors.New("tenant_count is not of these tenants")
	case got.Events != want.Events:
		return errors.New("events is not of these tenants")
	}
	c, _, err := splitNote(a.Checkpoint)
	if err == nil && c.Size != a.Header.Number {
		err = errors.New("the checkpoint is of another cadence")
	}
	return err
}
