package anchor

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math/bits"
	"strconv"

	"github.com/agentplatform/agentplatform/pkg/audit/canonical"
	"github.com/agentplatform/agentplatform/pkg/audit/merkle"
)

// ProofVersion is the member "proof" of a proof file.
const ProofVersion = "agentplatform/1"

const maxProof = 4 << 20 // bytes of a proof file; an event has at most one of payload

// Proof is the content of a proof file: one event, and all it takes to lead it to a checkpoint that the log's key and
// its witnesses signed. Nothing in it is another tenant's but sums and hashes.
//
// The file is one canonical JSON object, so that the texts that are hashed stand in it as they are:
//
//	checkpoint  the note of the anchor, as in its object
//	event       the envelope
//	hashes      base64 of 32 bytes each: prev_hash of the event (not if position is 1, then it is GENESIS), the tenant's
//	            last event_hash, and of the header merkle_root, previous_anchor_sha256 (not in the first anchor), proof_root, tenants_sha256
//	header      the anchor's header without its hashes, cadence_id (the checkpoint's size) and schema_version (1)
//	index       of the tenant among all of the anchor, from 0
//	length      of the tenant's chain
//	paths       base64 of 32 bytes each, siblings of the leaf first: the event's path to tree_root, the tenant's to
//	            proof_root, the anchor's to the log's root. How long each is follows from index and size of its tree
//	position    of the event in its chain, from 1
//	proof       agentplatform/1
//
// The anchor is the last leaf of its log, so no index of it is needed, and its path is short.
type Proof struct {
	Event      []byte // canonical envelope
	Prev       string // hash of the event before it, or Genesis
	Position   uint64 // in the chain, from 1
	Head       merkle.Hash
	Length     uint64 // of the chain, as anchored
	Index      uint64 // of the tenant in the anchor's list, from 0
	EventPath  []merkle.Hash
	TenantPath []merkle.Hash
	LogPath    []merkle.Hash
	Header     Header
	Checkpoint string
}

// LogPath is the path of the last anchor in its log, from the state of the log before it.
func LogPath(before merkle.Range) []merkle.Hash {
	state, err := before.MarshalBinary()
	if err != nil { // it never fails
		return nil
	}
	path := make([]merkle.Hash, bits.OnesCount64(before.Size()))
	for i := range path {
		path[i] = merkle.Hash(state[len(state)-32*(i+1):])
	}
	return path
}

// Build writes the proof file. It checks that the parts fit by their numbers; whether they prove the event is what
// Check tells.
func (p Proof) Build() ([]byte, error) {
	c, err := ParseCheckpoint(p.Checkpoint)
	switch {
	case err != nil:
	case canonical.Check(p.Event) != nil || len(p.Event) == 0 || p.Event[0] != '{':
		err = errors.New("the event is not a canonical object")
	case !isLink(p.Prev) || (p.Position == 1) != (p.Prev == Genesis):
		err = errors.New("prev_hash is GENESIS only at position 1, and a hash at all others")
	case c.Size != p.Header.Number:
		err = errors.New("the checkpoint is of another anchor")
	default:
		err = errors.Join(p.Header.check(), p.fits())
	}
	if err != nil {
		return nil, fmt.Errorf("anchor: proof: %w", err)
	}
	hashes := make([]byte, 0, 6*32)
	hashes = appendLink(hashes, p.Prev)
	hashes = append(append(hashes, p.Head[:]...), p.Header.MerkleRoot[:]...)
	hashes = appendLink(hashes, p.Header.Previous)
	hashes = append(append(hashes, p.Header.ProofRoot[:]...), p.Header.TenantsSHA256[:]...)
	paths := make([]byte, 0, 64*32)
	for _, path := range [][]merkle.Hash{p.EventPath, p.TenantPath, p.LogPath} {
		for _, h := range path {
			paths = append(paths, h[:]...)
		}
	}

	file, err := canonical.AppendString(append(make([]byte, 0, len(p.Event)+3<<10), `{"checkpoint":`...), p.Checkpoint)
	if err != nil {
		return nil, fmt.Errorf("anchor: proof: %w", err)
	}
	file = append(append(file, `,"event":`...), p.Event...)
	file = base64.StdEncoding.AppendEncode(append(file, `,"hashes":"`...), hashes)
	file = append(file, `","header":{`...)
	if p.Header.Backfill != nil {
		file = append(appendWindow(append(file, `"backfill":`...), *p.Header.Backfill), ',')
	}
	file = strconv.AppendUint(append(file, `"cadence":`...), p.Header.Cadence, 10)
	file = strconv.AppendUint(append(file, `,"events":`...), p.Header.Events, 10)
	file = appendTime(append(file, `,"recorded_at":`...), p.Header.RecordedAt)
	file = strconv.AppendUint(append(file, `,"tenant_count":`...), p.Header.TenantCount, 10)
	file = appendWindow(append(file, `,"window":`...), p.Header.Window)
	file = strconv.AppendUint(append(file, `},"index":`...), p.Index, 10)
	file = strconv.AppendUint(append(file, `,"length":`...), p.Length, 10)
	file = base64.StdEncoding.AppendEncode(append(file, `,"paths":"`...), paths)
	file = strconv.AppendUint(append(file, `","position":`...), p.Position, 10)
	return append(file, `,"proof":"`+ProofVersion+`"}`...), nil
}

// fits holds the numbers to what a tree can be.
func (p Proof) fits() error {
	switch {
	case p.Position < 1 || p.Position > p.Length:
		return fmt.Errorf("no position %d in a chain of %d", p.Position, p.Length)
	case p.Index >= p.Header.TenantCount:
		return fmt.Errorf("no tenant %d among %d", p.Index, p.Header.TenantCount)
	case len(p.EventPath) != pathLength(p.Position-1, p.Length),
		len(p.TenantPath) != pathLength(p.Index, p.Header.TenantCount),
		len(p.LogPath) != pathLength(p.Header.Number-1, p.Header.Number):
		return errors.New("a path has the wrong length")
	}
	return nil
}

// parseProof reads what Build writes; one line end may follow, as editors add it.
func parseProof(file []byte) (p Proof, err error) {
	if len(file) > maxProof {
		return p, errors.New("too long")
	}
	c := &cursor{text: file}
	c.literal(`{"checkpoint":`)
	p.Checkpoint = c.string()
	c.literal(`,"event":`)
	p.Event = c.object()
	c.literal(`,"hashes":`)
	hashes := c.hashes()
	c.literal(`,"header":{`)
	p.Header.Backfill = c.backfill()
	c.literal(`"cadence":`)
	p.Header.Cadence = c.uint()
	c.literal(`,"events":`)
	p.Header.Events = c.uint()
	c.literal(`,"recorded_at":`)
	p.Header.RecordedAt = c.time()
	c.literal(`,"tenant_count":`)
	p.Header.TenantCount = c.uint()
	c.literal(`,"window":`)
	p.Header.Window = c.window()
	c.literal(`},"index":`)
	p.Index = c.uint()
	c.literal(`,"length":`)
	p.Length = c.uint()
	c.literal(`,"paths":`)
	paths := c.hashes()
	c.literal(`,"position":`)
	p.Position = c.uint()
	c.literal(`,"proof":"` + ProofVersion + `"}`)
	if c.starts("\n") {
		c.literal("\n")
	}
	if err := c.end(); err != nil {
		return p, err
	}
	note, err := ParseCheckpoint(p.Checkpoint)
	if err != nil {
		return p, err
	}
	p.Header.Number = note.Size
	return p, p.share(hashes, paths)
}

// share deals the hashes of the file out.
func (p *Proof) share(hashes, paths []merkle.Hash) error {
	link := func(first bool) string {
		if first || len(hashes) == 0 {
			return Genesis
		}
		h := hashes[0]
		hashes = hashes[1:]
		return fmt.Sprintf("%x", h)
	}
	want := 6
	if p.Position == 1 {
		want--
	}
	if p.Header.Number == 1 {
		want--
	}
	if len(hashes) != want {
		return fmt.Errorf("%d hashes, not %d", len(hashes), want)
	}
	p.Prev = link(p.Position == 1)
	p.Head, p.Header.MerkleRoot, hashes = hashes[0], hashes[1], hashes[2:]
	p.Header.Previous = link(p.Header.Number == 1)
	p.Header.ProofRoot, p.Header.TenantsSHA256 = hashes[0], hashes[1]

	if p.Position < 1 || p.Position > p.Length || p.Index >= p.Header.TenantCount || p.Header.Number < 1 || p.Header.Number > maxNumber {
		return errors.New("numbers that cannot be")
	}
	for _, path := range []struct {
		of          *[]merkle.Hash
		index, size uint64
	}{{&p.EventPath, p.Position - 1, p.Length}, {&p.TenantPath, p.Index, p.Header.TenantCount}, {&p.LogPath, p.Header.Number - 1, p.Header.Number}} {
		n := min(pathLength(path.index, path.size), len(paths))
		*path.of, paths = paths[:n:n], paths[n:]
	}
	if len(paths) != 0 {
		return errors.New("more hashes than the paths have")
	}
	return p.fits()
}

// pathLength is how many hashes lead from a leaf to the root (RFC 9162 §2.1.3).
func pathLength(index, size uint64) int {
	inner := bits.Len64(index ^ (size - 1))
	return inner + bits.OnesCount64(index>>inner)
}

// hashes reads base64 of hashes one after another.
func (c *cursor) hashes() []merkle.Hash {
	start := c.at
	c.literal(`"`)
	if c.err == nil && c.starts(`"`) { // none: one tenant, one event, one anchor
		c.literal(`"`)
		return nil
	}
	c.at = start
	b := c.base64(256 * 32)
	if c.err == nil && len(b)%32 != 0 {
		c.fail("not whole hashes")
	}
	hashes := make([]merkle.Hash, len(b)/32)
	if c.err == nil {
		for i := range hashes {
			hashes[i] = merkle.Hash(b[32*i:])
		}
	}
	return hashes
}

func appendLink(dst []byte, link string) []byte {
	var h merkle.Hash
	if link == Genesis || !parseHash(&h, link) {
		return dst
	}
	return append(dst, h[:]...)
}
