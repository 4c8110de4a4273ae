package merkle

import "math/bits"

// Tree keeps all hashes of a growing tree (64 bytes a leaf) and so makes any path in log n steps: for many proofs of one tree. The zero Tree is empty.
type Tree struct {
	levels [][]Hash // levels[k][i] is the root of leaves i·2^k … (i+1)·2^k−1; only whole subtrees are kept
}

// Append adds a leaf.
func (t *Tree) Append(leaf Hash) {
	for level := 0; ; level++ {
		if level == len(t.levels) {
			t.levels = append(t.levels, nil)
		}
		t.levels[level] = append(t.levels[level], leaf)
		n := len(t.levels[level])
		if n&1 == 1 {
			return
		}
		leaf = NodeHash(t.levels[level][n-2], leaf)
	}
}

// Size is how many leaves the tree has.
func (t *Tree) Size() uint64 {
	if len(t.levels) == 0 {
		return 0
	}
	return uint64(len(t.levels[0]))
}

// Root is the root of the tree.
func (t *Tree) Root() Hash {
	if t.Size() == 0 {
		return Empty()
	}
	return t.root(0, t.Size())
}

// root is the root of leaves from … to−1, from being a multiple of the largest subtree in it.
func (t *Tree) root(from, to uint64) Hash {
	var peaks [64]Hash
	n := 0
	for from < to {
		level := bits.Len64(to-from) - 1
		peaks[n] = t.levels[level][from>>level]
		n++
		from += 1 << level
	}
	return fold(peaks[:n])
}

// Inclusion is as the function of this name, for the tree as it was when it had size leaves. An index that is not below size, or a size that the tree has not yet, panics.
func (t *Tree) Inclusion(index, size uint64) []Hash {
	if index >= size || size > t.Size() {
		panic("merkle: inclusion of a leaf outside of the tree")
	}
	inner, border := shape(index, size)
	path := make([]Hash, 0, inner+border)
	for level := range inner {
		sibling := index>>level ^ 1
		path = append(path, t.root(sibling<<level, min((sibling+1)<<level, size)))
	}
	for level := inner; len(path) < cap(path); level++ {
		if index>>level&1 == 1 {
			path = append(path, t.levels[level][index>>level-1])
		}
	}
	return path
}

// Consistency is as the function of this name, for the trees of size1 and of size2 leaves. Sizes other than 0 < size1 ≤ size2 ≤ Size panic.
func (t *Tree) Consistency(size1, size2 uint64) []Hash {
	if size1 == 0 || size1 > size2 || size2 > t.Size() {
		panic("merkle: consistency of trees that are not there")
	}
	if size1 == size2 {
		return []Hash{}
	}
	level := bits.TrailingZeros64(size1)
	path := t.Inclusion(size1-1, size2)[level:] // of the older tree's last whole subtree
	if size1 == 1<<level {
		return path // which is the older tree
	}
	return append([]Hash{t.levels[level][(size1-1)>>level]}, path...)
}
