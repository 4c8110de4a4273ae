package merkle

import "math/bits"

// Prover makes the inclusion path of one leaf from a stream of leaves, in memory for log n hashes. Make it with NewProver.
type Prover struct {
	index uint64
	state Range
	below []Hash // the siblings of the leaf and its ancestors, up to the peak above the leaf
}

// NewProver proves the leaf with this index, counted from 0.
func NewProver(index uint64) *Prover { return &Prover{index: index} }

// Size is how many leaves have been added.
func (p *Prover) Size() uint64 { return p.state.Size() }

// Root is the root of the tree of the leaves so far.
func (p *Prover) Root() Hash { return p.state.Root() }

// Append adds the next leaf.
func (p *Prover) Append(leaf Hash) {
	at, node := p.state.size, leaf // node is number at of its level
	for level := 0; at&1 == 1; level++ {
		left := p.state.peaks[len(p.state.peaks)-1-level]
		switch p.index >> level {
		case at:
			p.below = append(p.below, left)
		case at - 1:
			p.below = append(p.below, node)
		}
		node = NodeHash(left, node)
		at >>= 1
	}
	p.state.peaks = append(p.state.peaks[:len(p.state.peaks)-bits.TrailingZeros64(^p.state.size)], node)
	p.state.size++
}

// Path is the inclusion path in the tree of the leaves so far, the sibling of the leaf first; nil as long as the leaf itself has not been added.
func (p *Prover) Path() []Hash {
	if p.state.size <= p.index {
		return nil
	}
	peaks := p.state.peaks
	// The leaf lies below the peak of the highest bit of the size that the index does not share: bits above are peaks to its left.
	mine := bits.OnesCount64(p.state.size >> (bits.Len64(p.index^p.state.size) - 1) >> 1)
	path := append(make([]Hash, 0, len(p.below)+len(peaks)), p.below...)
	if right := peaks[mine+1:]; len(right) > 0 {
		path = append(path, fold(right))
	}
	for i := mine - 1; i >= 0; i-- {
		path = append(path, peaks[i])
	}
	return path
}
