package verify

import (
	"bufio"
	"container/heap"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"os"
	"slices"
	"sync"
)

// idSet finds ids that are there twice, in bounded memory: sorted runs go to a temporary file and are merged at the end.
type idSet struct {
	block cipher.Block
	mu    sync.Mutex
	file  *os.File // nil until there is more than fits
	size  int64
	runs  []section // in the file
	held  [][]uuid  // sorted runs that stay in memory
	sum   idSum     // of all ids
}

type section struct{ at, length int64 }

// idSum tells whether two sets of ids are the same: the sum of the ids encrypted with a key that nobody knows. That ids are in one set and not in the other
// and the sums are equal all the same cannot be arranged.
type idSum struct{ high, low, count uint64 }

func (s *idSum) add(o idSum) {
	var carry uint64
	s.low, carry = bits.Add64(s.low, o.low, 0)
	s.high, _ = bits.Add64(s.high, o.high, carry)
	s.count += o.count
}

const idsHeld = 1 << 18 // ids of a run: 4 MiB

func newIDSet() (*idSet, error) {
	key := make([]byte, 16)
	rand.Read(key) // never fails (crypto/rand)
	block, err := aes.NewCipher(key)
	return &idSet{block: block}, err
}

// idRun gathers ids for a set. It is one goroutine's.
type idRun struct {
	set  *idSet
	ids  []uuid
	sum  idSum
	code [16]byte
}

func (s *idSet) run() *idRun { return &idRun{set: s} }

func (r *idRun) add(id uuid) error {
	r.count(id)
	r.ids = append(r.ids, id)
	if len(r.ids) == idsHeld {
		return r.flush()
	}
	return nil
}

// count adds the id to the sum only.
func (r *idRun) count(id uuid) {
	r.set.block.Encrypt(r.code[:], id[:])
	r.sum.add(idSum{binary.BigEndian.Uint64(r.code[:]), binary.BigEndian.Uint64(r.code[8:]), 1})
}

// flush writes a sorted run.
func (r *idRun) flush() error {
	slices.SortFunc(r.ids, compareIDs)
	s, length := r.set, int64(len(r.ids)*16)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		file, err := os.CreateTemp("", "audit-verifier-")
		if err != nil {
			return fmt.Errorf("verify: ids: %w", err)
		}
		s.file = file
		_ = os.Remove(file.Name()) // it goes when it is closed, also by a kill
	}
	out := bufio.NewWriterSize(io.NewOffsetWriter(s.file, s.size), 64<<10)
	for i := range r.ids {
		_, _ = out.Write(r.ids[i][:]) // Flush gives the error
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("verify: ids: %w", err)
	}
	s.runs = append(s.runs, section{s.size, length})
	s.size += length
	r.ids = r.ids[:0]
	return nil
}

// done hands the rest over.
func (r *idRun) done() {
	slices.SortFunc(r.ids, compareIDs)
	r.set.mu.Lock()
	defer r.set.mu.Unlock()
	if len(r.ids) > 0 {
		r.set.held = append(r.set.held, r.ids)
	}
	r.set.sum.add(r.sum)
	r.ids, r.sum = nil, idSum{}
}

// compareIDs is any order; by the random end of the ids it needs one comparison.
func compareIDs(a, b uuid) int {
	x, y := binary.LittleEndian.Uint64(a[8:]), binary.LittleEndian.Uint64(b[8:])
	if x == y {
		x, y = binary.LittleEndian.Uint64(a[:]), binary.LittleEndian.Uint64(b[:])
	}
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

func (s *idSet) close() {
	if s.file != nil {
		s.file.Close()
	}
}

// duplicates calls found for each id that was added more than once.
func (s *idSet) duplicates(found func(id uuid)) error {
	var last uuid
	times := 0
	return s.each(func(id uuid) error {
		if times == 0 || id != last {
			last, times = id, 1
		} else if times++; times == 2 {
			found(id)
		}
		return nil
	})
}

// each calls visit for all ids, equal ones in a row.
func (s *idSet) each(visit func(id uuid) error) error {
	var m merge
	for _, run := range s.held {
		m = append(m, &source{ids: run})
	}
	for _, run := range s.runs {
		m = append(m, &source{in: bufio.NewReaderSize(io.NewSectionReader(s.file, run.at, run.length), 16<<10)})
	}
	m = slices.DeleteFunc(m, func(s *source) bool { return !s.advance() })
	heap.Init(&m)
	for len(m) > 0 {
		top := m[0]
		if err := visit(top.id); err != nil {
			return err
		}
		switch more := top.advance(); {
		case more:
			heap.Fix(&m, 0)
		case top.err != nil:
			return fmt.Errorf("verify: ids: %w", top.err)
		default:
			heap.Pop(&m)
		}
	}
	return nil
}

// source is a sorted run that is being merged.
type source struct {
	id  uuid
	ids []uuid
	in  io.Reader
	err error
}

func (s *source) advance() bool {
	if s.in == nil {
		if len(s.ids) == 0 {
			return false
		}
		s.id, s.ids = s.ids[0], s.ids[1:]
		return true
	}
	_, err := io.ReadFull(s.in, s.id[:])
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return err == nil
}

type merge []*source

func (m merge) Len() int           { return len(m) }
func (m merge) Less(i, j int) bool { return compareIDs(m[i].id, m[j].id) < 0 }
func (m merge) Swap(i, j int)      { m[i], m[j] = m[j], m[i] }
func (m *merge) Push(x any)        { *m = append(*m, x.(*source)) }
func (m *merge) Pop() any {
	old := *m
	x := old[len(old)-1]
	*m = old[:len(old)-1]
	return x
}
