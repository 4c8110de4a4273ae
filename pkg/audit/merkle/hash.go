// Package merkle holds the Merkle trees of RFC 6962 §2.1 with SHA-256: roots, states that only grow, inclusion and consistency proofs, and their checks.
//
// Invariants:
//   - A leaf hash is SHA-256(0x00 ‖ data), a node hash SHA-256(0x01 ‖ left ‖ right), so neither can be passed off as the other.
//   - n > 1 leaves are split at the largest power of two below n. A node without a sibling is promoted, never doubled: no two lists of leaves have the same root.
//   - The tree of no leaves has the root SHA-256 of nothing.
//   - Everything here takes leaf hashes; what is in a leaf is its owner's business.
//   - Checks accept a path of exactly the length that index and sizes call for, and no index outside of the tree.
//   - A consistency proof begins at a tree of at least one leaf. The empty tree is a prefix of every tree, so that from it there is nothing to prove, and a
//     check that says yes would only seem to have checked something: sizes of 0 are refused (as RFC 6962 §2.1.2 has it, 0 < m ≤ n).
package merkle

import "crypto/sha256"

// Hash is a SHA-256: of a leaf, of a node, or the root.
type Hash = [sha256.Size]byte

// Empty is the root of the tree of no leaves.
func Empty() Hash { return sha256.Sum256(nil) }

// LeafHash is SHA-256(0x00 ‖ data…), the parts of data one after the other.
func LeafHash(data ...[]byte) Hash {
	var room [192]byte // a short leaf costs no allocation
	leaf := room[:1]
	for _, part := range data {
		leaf = append(leaf, part...)
	}
	return sha256.Sum256(leaf)
}

// NodeHash is SHA-256(0x01 ‖ left ‖ right).
func NodeHash(left, right Hash) Hash {
	var node [1 + 2*sha256.Size]byte
	node[0] = 1
	copy(node[1:], left[:])
	copy(node[1+sha256.Size:], right[:])
	return sha256.Sum256(node[:])
}

// Root is the root of the tree with these leaf hashes.
func Root(leaves []Hash) Hash {
	var peaks [64]Hash
	r := Range{peaks: peaks[:0]}
	for _, leaf := range leaves {
		r.Append(leaf)
	}
	return r.Root()
}
