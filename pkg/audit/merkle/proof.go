package merkle

import (
	"errors"
	"fmt"
	"math/bits"
)

// What a check finds. Callers tell them apart with errors.Is.
var (
	ErrOutside = errors.New("merkle: outside of the tree")                                   // index or size that is impossible
	ErrLength  = errors.New("merkle: the path has not the length that its tree calls for")   // cut, or padded
	ErrRoot    = errors.New("merkle: the path does not lead to the root that it should")     // leaf, path or root is another's
	ErrOldRoot = errors.New("merkle: the path does not lead to the older root that it must") // the newer tree does not hold the older one
)

// split is the largest power of two below n; n > 1.
func split(n int) int { return 1 << (bits.Len64(uint64(n-1)) - 1) }

// Inclusion is the path that proves the leaf with this index in the tree of these leaf hashes, the sibling of the leaf first (RFC 6962 §2.1.1). An index that is not
// in leaves is a fault of the program, and panics as leaves[index] would.
func Inclusion(leaves []Hash, index uint64) []Hash {
	_ = leaves[index]
	path := make([]Hash, 0, bits.Len(uint(len(leaves))))
	return inclusion(path, leaves, int(index))
}

func inclusion(path, leaves []Hash, index int) []Hash {
	if len(leaves) == 1 {
		return path
	}
	if k := split(len(leaves)); index < k {
		return append(inclusion(path, leaves[:k], index), Root(leaves[k:]))
	} else {
		return append(inclusion(path, leaves[k:], index-k), Root(leaves[:k]))
	}
}

// RootFromInclusion is the root of the tree of size leaves in which path proves the leaf at index.
func RootFromInclusion(leaf Hash, index, size uint64, path []Hash) (Hash, error) {
	if index >= size {
		return Hash{}, fmt.Errorf("%w: leaf %d of %d", ErrOutside, index, size)
	}
	inner, border := shape(index, size)
	if len(path) != inner+border {
		return Hash{}, fmt.Errorf("%w: %d hashes, not %d", ErrLength, len(path), inner+border)
	}
	return right(climb(leaf, path[:inner], index), path[inner:]), nil
}

// VerifyInclusion is nil exactly when path proves that the leaf is at index in the tree of size leaves with that root.
func VerifyInclusion(leaf Hash, index, size uint64, path []Hash, root Hash) error {
	got, err := RootFromInclusion(leaf, index, size, path)
	if err == nil && got != root {
		err = ErrRoot
	}
	return err
}

// Consistency is the path that proves the tree of the first size1 leaves to be the beginning of the tree of all (RFC 6962 §2.1.2). A size1 that is 0 or more than
// there are leaves is a fault of the program, and panics.
func Consistency(leaves []Hash, size1 uint64) []Hash {
	_ = leaves[size1-1]
	path := make([]Hash, 0, 1+bits.Len(uint(len(leaves))))
	return consistency(path, leaves, int(size1), true)
}

// consistency is SUBPROOF; whole says that the older tree is a whole subtree so far, so that its root need not be in the path.
func consistency(path, leaves []Hash, size1 int, whole bool) []Hash {
	if size1 == len(leaves) {
		if whole {
			return path
		}
		return append(path, Root(leaves))
	}
	if k := split(len(leaves)); size1 <= k {
		return append(consistency(path, leaves[:k], size1, whole), Root(leaves[k:]))
	} else {
		return append(consistency(path, leaves[k:], size1-k, false), Root(leaves[:k]))
	}
}

// VerifyConsistency is nil exactly when path proves that the tree of size1 leaves with root1 is the beginning of the tree of size2 leaves with root2. Sizes of 0 are ErrOutside:
// see the package's invariants.
func VerifyConsistency(size1, size2 uint64, root1, root2 Hash, path []Hash) error {
	if size1 == 0 || size1 > size2 {
		return fmt.Errorf("%w: %d leaves, then %d", ErrOutside, size1, size2)
	}
	if size1 == size2 {
		if len(path) > 0 {
			return fmt.Errorf("%w: %d hashes, not 0", ErrLength, len(path))
		}
		if root1 != root2 {
			return ErrRoot
		}
		return nil
	}
	// The path is the inclusion path of the last subtree of the older tree, which comes first in it unless it is the older tree itself.
	inner, border := shape(size1-1, size2)
	level := bits.TrailingZeros64(size1)
	inner -= level
	seed := root1
	length := inner + border
	if size1 != 1<<level {
		length++
	}
	if len(path) != length {
		return fmt.Errorf("%w: %d hashes, not %d", ErrLength, len(path), length)
	}
	if size1 != 1<<level {
		seed, path = path[0], path[1:]
	}
	at := (size1 - 1) >> level
	old := seed
	for i, h := range path[:inner] {
		if at>>i&1 == 1 { // what lies to the left is in the older tree too
			old = NodeHash(h, old)
		}
	}
	if right(old, path[inner:]) != root1 {
		return ErrOldRoot
	}
	if right(climb(seed, path[:inner], at), path[inner:]) != root2 {
		return ErrRoot
	}
	return nil
}

// shape is how long an inclusion path is: inner hashes up to where it meets the right edge of the tree, then border hashes, all from the left.
func shape(index, size uint64) (inner, border int) {
	inner = bits.Len64(index ^ (size - 1))
	return inner, bits.OnesCount64(index >> inner)
}

// climb joins a node, number at of its level, with its siblings.
func climb(node Hash, siblings []Hash, at uint64) Hash {
	for i, h := range siblings {
		if at>>i&1 == 0 {
			node = NodeHash(node, h)
		} else {
			node = NodeHash(h, node)
		}
	}
	return node
}

// right joins a node with what lies to its left.
func right(node Hash, lefts []Hash) Hash {
	for _, h := range lefts {
		node = NodeHash(h, node)
	}
	return node
}
