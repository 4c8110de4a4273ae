package merkle

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/transparency-dev/merkle/testonly"
)

func hashOf(t testing.TB, text string) (h Hash) {
	raw, err := hex.DecodeString(text)
	require.NoError(t, err)
	require.Len(t, raw, len(h))
	return Hash(raw)
}

// The vectors that transparency-dev/merkle publishes for RFC 6962 (rfc6962/rfc6962_test.go).
func TestPublishedHashes(t *testing.T) {
	require.Equal(t, hashOf(t, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"), Empty())
	require.Equal(t, hashOf(t, "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"), LeafHash())
	require.Equal(t, hashOf(t, "395aa064aa4c29f7010acfe3f25db9485bbd4b91897b6ad7ad547639252b4d56"), LeafHash([]byte("L123456")))
	// The published node has children that are no hashes, N123 and N456; here is what a node of ours is made of.
	left, right := LeafHash([]byte("N123")), LeafHash([]byte("N456"))
	require.Equal(t, sha256.Sum256(append(append([]byte{1}, left[:]...), right[:]...)), NodeHash(left, right))
}

func TestLeafHashJoinsItsParts(t *testing.T) {
	long := make([]byte, 1000)
	for n := range long {
		long[n] = byte(n)
		require.Equal(t, sha256.Sum256(append([]byte{0}, long[:n]...)), LeafHash(long[:n/3], nil, long[n/3:n]))
	}
}

// leafHashes are the published leaves' (testonly/constants.go).
func leafHashes() (hashes []Hash) {
	for _, leaf := range testonly.LeafInputs() {
		hashes = append(hashes, LeafHash(leaf))
	}
	return hashes
}

// The published roots and compact ranges of the trees of 0 to 8 leaves.
func TestPublishedRoots(t *testing.T) {
	leaves, roots, compact := leafHashes(), testonly.RootHashes(), testonly.CompactTrees()
	var r Range
	for n := range roots {
		require.Equal(t, Hash(roots[n]), Root(leaves[:n]))
		require.Equal(t, Hash(roots[n]), r.Root())
		require.Equal(t, uint64(n), r.Size())
		require.Len(t, r.peaks, len(compact[n]))
		for i := range r.peaks {
			require.Equal(t, Hash(compact[n][i]), r.peaks[i])
		}
		if n < len(leaves) {
			r.Append(leaves[n])
		}
	}
}

// A node cannot be passed off as a leaf, and the order of children counts.
func TestHashesCannotBePassedOff(t *testing.T) {
	a, b := LeafHash([]byte("Hello")), LeafHash([]byte("World"))
	require.NotEqual(t, a, b)
	require.NotEqual(t, NodeHash(a, b), LeafHash(a[:], b[:]))
	require.NotEqual(t, NodeHash(a, b), NodeHash(b, a))
	require.NotEqual(t, NodeHash(a, b), sha256.Sum256(append(a[:], b[:]...)))
	require.NotEqual(t, Empty(), LeafHash())
	require.NotEqual(t, Empty(), Hash{})
}

// Lists of leaves that differ have roots that differ; a node without a sibling is not doubled (CVE-2012-2459).
func TestRootsAreOfOneListOnly(t *testing.T) {
	seen := map[Hash][]Hash{}
	alphabet := []Hash{LeafHash([]byte("a")), LeafHash([]byte("b"))}
	var grow func(list []Hash)
	grow = func(list []Hash) {
		root := Root(list)
		require.NotContains(t, seen, root)
		seen[root] = list
		if len(list) < 9 {
			for _, leaf := range alphabet {
				grow(append(append([]Hash(nil), list...), leaf))
			}
		}
	}
	grow(nil)
	require.Len(t, seen, 1<<10-1)
	// Nor does a tree of leaves have the root of a tree of its own nodes, when these are hashed as leaves must be.
	leaves := leafHashes()
	left, right := Root(leaves[:4]), Root(leaves[4:])
	require.NotEqual(t, Root(leaves), Root([]Hash{LeafHash(left[:]), LeafHash(right[:])}))
}
