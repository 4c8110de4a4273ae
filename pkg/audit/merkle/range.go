package merkle

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"
)

// Range is the state of a tree that grows: the roots ("peaks") of its perfect subtrees, largest first, one for each bit of its size. It is all that is needed to add leaves and
// to know the root, in log n hashes. The zero Range is the empty tree. Copy it with Clone: a plain copy shares memory with the original.
type Range struct {
	size  uint64
	peaks []Hash
}

// Size is how many leaves the tree has.
func (r Range) Size() uint64 { return r.size }

// Append adds a leaf.
func (r *Range) Append(leaf Hash) {
	for n := r.size; n&1 == 1; n >>= 1 {
		last := len(r.peaks) - 1
		leaf = NodeHash(r.peaks[last], leaf)
		r.peaks = r.peaks[:last]
	}
	r.peaks = append(r.peaks, leaf)
	r.size++
}

// Root is the root of the tree.
func (r Range) Root() Hash {
	if r.size == 0 {
		return Empty()
	}
	return fold(r.peaks)
}

// fold joins peaks from the smallest up.
func fold(peaks []Hash) Hash {
	root := peaks[len(peaks)-1]
	for _, peak := range slices.Backward(peaks[:len(peaks)-1]) {
		root = NodeHash(peak, root)
	}
	return root
}

// Clone is a Range of its own with the same leaves.
func (r Range) Clone() Range { return Range{r.size, slices.Clone(r.peaks)} }

// AppendBinary appends the size as 8 bytes, big endian, and the peaks, 32 bytes each. It never fails.
func (r Range) AppendBinary(dst []byte) ([]byte, error) {
	dst = binary.BigEndian.AppendUint64(dst, r.size)
	for _, peak := range r.peaks {
		dst = append(dst, peak[:]...)
	}
	return dst, nil
}

// MarshalBinary is AppendBinary to nothing.
func (r Range) MarshalBinary() ([]byte, error) {
	return r.AppendBinary(make([]byte, 0, 8+len(r.peaks)*sha256.Size))
}

// UnmarshalBinary takes what MarshalBinary gave, and nothing that is shorter or longer. After an error r is as it was.
func (r *Range) UnmarshalBinary(text []byte) error {
	if len(text) < 8 {
		return errors.New("merkle: the state of a tree has at least 8 bytes")
	}
	size := binary.BigEndian.Uint64(text)
	text = text[8:]
	if len(text) != bits.OnesCount64(size)*sha256.Size {
		return errors.New("merkle: the state of the tree has not as many hashes as its size calls for")
	}
	peaks := make([]Hash, len(text)/sha256.Size)
	for i := range peaks {
		peaks[i] = Hash(text[i*sha256.Size:])
	}
	r.size, r.peaks = size, peaks
	return nil
}
