package verify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/agentplatform/agentplatform/pkg/atomicfile"
	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/agentplatform/agentplatform/pkg/audit/merkle"
)

// memory is what a run leaves for the next: the anchor and the beacon that it came to, and every chain as of then. A bucket or a database that does not agree with it
// any more was rewritten, whoever signed it.
type memory struct {
	Version int    `json:"version"`
	Bucket  string `json:"bucket"`
	Anchor  struct {
		Number     uint64 `json:"number"`
		SHA256     string `json:"sha256"`
		Checkpoint string `json:"checkpoint"`
		Log        []byte `json:"log"` // compact range over the anchors
	} `json:"anchor"`
	Beacon struct {
		Number uint64 `json:"number"`
		SHA256 string `json:"sha256"`
	} `json:"beacon"`
	Tenants []*saved `json:"tenants"` // ascending
	log     merkle.Range
}

// saved is a chain as of the anchor, and its last event.
type saved struct {
	TenantID string `json:"tenant_id"`
	Length   uint64 `json:"length"` // 0: no anchor knows it
	Hash     string `json:"event_hash"`
	Recorded int64  `json:"recorded_at"` // of the event at Length, microseconds since 1970
	Cadence  uint64 `json:"cadence"`
	Tree     []byte `json:"tree"` // compact range over the event hashes
	Tip      tip    `json:"tip"`
	Beaconed uint64 `json:"beaconed"`
	id       uuid
	tree     merkle.Range
}

// tip is the last event that was read.
type tip struct {
	Length uint64 `json:"length"`
	Hash   string `json:"event_hash"`
}

const memoryVersion = 1

// readMemory reads the file; nil if there is none yet.
func readMemory(path, bucket string) (*memory, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("verify: state: %w", err)
	}
	m := &memory{}
	if err = json.Unmarshal(text, m); err == nil {
		err = m.check(bucket)
	}
	if err != nil {
		return nil, fmt.Errorf("verify: state: %s is not the state of an earlier run over this bucket (%w); move it away for a full run", path, err)
	}
	return m, nil
}

func (m *memory) check(bucket string) error {
	switch {
	case m.Version != memoryVersion:
		return fmt.Errorf("it has version %d", m.Version)
	case m.Bucket != bucket:
		return fmt.Errorf("it is of bucket %s", m.Bucket)
	}
	if err := m.log.UnmarshalBinary(m.Anchor.Log); err != nil || m.log.Size() != m.Anchor.Number {
		return errors.New("its log is not of its anchor")
	}
	for i, t := range m.Tenants {
		if t == nil {
			return errors.New("it has a tenant that is none")
		}
		var ok bool
		if t.id, ok = parseUUID(t.TenantID); !ok || i > 0 && bytes.Compare(m.Tenants[i-1].id[:], t.id[:]) >= 0 {
			return errors.New("its tenants are out of order")
		}
		if t.Length == 0 && len(t.Tree) == 0 {
			continue
		}
		if err := t.tree.UnmarshalBinary(t.Tree); err != nil || t.tree.Size() != t.Length || len(t.Hash) != 64 {
			return fmt.Errorf("its side tree of tenant %s is not of its chain", t.TenantID)
		}
	}
	return nil
}

// write puts the file in place of the one before.
func (m *memory) write(path string) error {
	text, err := json.Marshal(m)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err != nil {
		return fmt.Errorf("verify: state: %w", err)
	}
	if err := atomicfile.Write(path, text, 0o600); err != nil {
		return fmt.Errorf("verify: state: %w", err)
	}
	return nil
}

// saved is what an earlier run knew of the tenant; nil: nothing.
func (r *run) saved(id uuid) *saved {
	if r.memory == nil {
		return nil
	}
	i, there := slices.BinarySearchFunc(r.memory.Tenants, id, func(s *saved, id uuid) int { return bytes.Compare(s.id[:], id[:]) })
	if !there {
		return nil
	}
	return r.memory.Tenants[i]
}

// remember holds the bucket to the memory: the anchor and the beacon must be there as they were. If not, the run starts from nothing.
func (r *run) remember(ctx context.Context) error {
	if r.memory == nil {
		return nil
	}
	m := r.memory
	for _, o := range []struct{ key, sum string }{{anchor.Key(m.Anchor.Number), m.Anchor.SHA256}, {anchor.BeaconKey(m.Beacon.Number), m.Beacon.SHA256}} {
		if o.sum == "" {
			continue
		}
		f, err := r.one(ctx, o.key, entire)
		if err != nil {
			return err
		}
		switch {
		case f == nil:
			r.found.add(Finding{Class: HistoryRewritten, Key: o.key, Detail: "an earlier run read it, and it is not there any more"})
			r.memory = nil
		case anchor.SHA256(f.body) != o.sum:
			r.found.add(Finding{Class: HistoryRewritten, Key: o.key, Detail: fmt.Sprintf("an earlier run read an object with the SHA-256 %s, now it is %s", o.sum, anchor.SHA256(f.body))})
			r.memory = nil
		}
	}
	return nil
}

// keep writes down what this run came to.
func (r *run) keep(h *history, b *beacons, chains []ended) error {
	m := &memory{Version: memoryVersion, Bucket: r.cfg.Bucket.Name()}
	m.Anchor.Number, m.Anchor.SHA256, m.Anchor.Checkpoint = h.hi, h.last.SHA256, h.last.Checkpoint
	m.Anchor.Log, _ = h.log.MarshalBinary() // never fails
	m.Beacon.Number, m.Beacon.SHA256 = b.number, b.sum
	for _, c := range chains {
		s := c.anchored
		s.TenantID, s.Beaconed = c.id.String(), b.lengths[c.id]
		if s.Length > 0 {
			s.Tree, _ = s.tree.MarshalBinary()
		}
		m.Tenants = append(m.Tenants, &s)
	}
	return m.write(r.cfg.State)
}
