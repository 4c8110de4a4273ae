package merkle

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/transparency-dev/merkle/compact"
	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"github.com/transparency-dev/merkle/testonly"
)

// numbered are n leaf hashes that differ.
func numbered(n int) []Hash {
	leaves := make([]Hash, n)
	for i := range leaves {
		leaves[i] = LeafHash(binary.BigEndian.AppendUint64(nil, uint64(i)))
	}
	return leaves
}

// theirTree is the reference tree of transparency-dev/merkle.
func theirTree(leaves []Hash) *testonly.Tree {
	tree := testonly.New(rfc6962.DefaultHasher)
	for _, leaf := range leaves {
		tree.Append(leaf[:])
	}
	return tree
}

// theirs turns a path of ours into one of the library.
func theirs(path []Hash) [][]byte {
	list := make([][]byte, len(path))
	for i := range path {
		list[i] = path[i][:]
	}
	return list
}

// ours is the other way round.
func ours(path [][]byte) []Hash {
	list := make([]Hash, len(path))
	for i := range path {
		list[i] = Hash(path[i])
	}
	return list
}

// Roots, inclusion paths of every leaf and consistency paths between every two sizes, from each of our makers, equal the library's, and both check them.
func TestOracle(t *testing.T) {
	const most = 301
	leaves := numbered(most)
	library := theirTree(leaves)
	var tree Tree
	var state Range
	for n := uint64(0); n <= most; n++ {
		root := Hash(library.HashAt(n))
		require.Equal(t, root, Root(leaves[:n]))
		require.Equal(t, root, tree.Root())
		require.Equal(t, root, state.Root())
		require.Equal(t, n, tree.Size())
		if n < most {
			tree.Append(leaves[n])
			state.Append(leaves[n])
		}
	}
	for size := uint64(1); size <= most; size++ {
		root := Hash(library.HashAt(size))
		for i := range size {
			want, err := library.InclusionProof(i, size)
			require.NoError(t, err)
			path := tree.Inclusion(i, size)
			same(t, want, path)
			require.NoError(t, VerifyInclusion(leaves[i], i, size, path, root))
			if size < 70 || i%17 == 0 {
				same(t, want, Inclusion(leaves[:size], i))
			}
			older := i + 1
			want, err = library.ConsistencyProof(older, size)
			require.NoError(t, err)
			path = tree.Consistency(older, size)
			same(t, want, path)
			require.NoError(t, VerifyConsistency(older, size, Hash(library.HashAt(older)), root, path))
			if size < 70 || i%17 == 0 {
				same(t, want, Consistency(leaves[:size], older))
			}
		}
	}
}

func same(t *testing.T, want [][]byte, got []Hash) {
	if len(want) != len(got) {
		require.Fail(t, "paths of different length", "%x\n%x", want, got)
	}
	for i := range want {
		if Hash(want[i]) != got[i] {
			require.Fail(t, "paths differ", "%x\n%x", want, got)
		}
	}
}

// Some larger trees, at random.
func TestOracleLarge(t *testing.T) {
	random := rand.New(rand.NewPCG(6962, 1))
	leaves := numbered(20_000)
	library := theirTree(leaves)
	var tree Tree
	for _, leaf := range leaves {
		tree.Append(leaf)
	}
	require.Equal(t, Hash(library.Hash()), tree.Root())
	for range 300 {
		size := 1 + random.Uint64N(uint64(len(leaves)))
		index := random.Uint64N(size)
		root := Hash(library.HashAt(size))
		want, err := library.InclusionProof(index, size)
		require.NoError(t, err)
		same(t, want, tree.Inclusion(index, size))
		require.NoError(t, VerifyInclusion(leaves[index], index, size, ours(want), root))
		want, err = library.ConsistencyProof(index+1, size)
		require.NoError(t, err)
		same(t, want, tree.Consistency(index+1, size))
		require.NoError(t, VerifyConsistency(index+1, size, Hash(library.HashAt(index+1)), root, ours(want)))
	}
	for range 5 {
		size := 1 + random.Uint64N(uint64(len(leaves)))
		index := random.Uint64N(size)
		require.Equal(t, tree.Inclusion(index, size), Inclusion(leaves[:size], index))
		require.Equal(t, tree.Consistency(index+1, size), Consistency(leaves[:size], index+1))
	}
}

// Whatever is done to indexes, sizes, roots and paths, the two checks agree; but for sizes of 0, where the library says yes to everything.
func TestChecksAgreeOnBrokenProofs(t *testing.T) {
	random := rand.New(rand.NewPCG(6962, 2))
	leaves := numbered(80)
	library := theirTree(leaves)
	pick := func() Hash { return leaves[random.IntN(len(leaves))] }
	bend := func(path []Hash) []Hash {
		switch random.IntN(6) {
		case 0:
			if len(path) > 0 {
				path[random.IntN(len(path))][random.IntN(32)] ^= 1 << random.IntN(8)
			}
		case 1:
			path = append(path, pick())
		case 2:
			path = append([]Hash{pick()}, path...)
		case 3:
			if len(path) > 0 {
				path = path[1:]
			}
		case 4:
			if len(path) > 0 {
				path = path[:len(path)-1]
			}
		}
		return path
	}
	nudge := func(n uint64) uint64 {
		switch random.IntN(8) {
		case 0:
			return n + 1
		case 1:
			return n - 1
		case 2:
			return n ^ 1<<random.IntN(64)
		}
		return n
	}
	accepted := 0
	for range 40_000 {
		size := 1 + random.Uint64N(uint64(len(leaves)))
		index := random.Uint64N(size)
		root := Hash(library.HashAt(size))
		want, err := library.InclusionProof(index, size)
		require.NoError(t, err)
		path, i, n := bend(ours(want)), nudge(index), nudge(size)
		theirErr := proof.VerifyInclusion(rfc6962.DefaultHasher, i, n, leaves[index][:], theirs(path), root[:])
		ourErr := VerifyInclusion(leaves[index], i, n, path, root)
		require.Equal(t, theirErr == nil, ourErr == nil, "leaf %d of %d: %v, %v", i, n, theirErr, ourErr)
		if ourErr == nil {
			accepted++
		}

		older := index + 1
		want, err = library.ConsistencyProof(older, size)
		require.NoError(t, err)
		path, i, n = bend(ours(want)), nudge(older), nudge(size)
		olderRoot := Hash(library.HashAt(older))
		theirErr = proof.VerifyConsistency(rfc6962.DefaultHasher, i, n, theirs(path), olderRoot[:], root[:])
		ourErr = VerifyConsistency(i, n, olderRoot, root, path)
		if i == 0 {
			require.ErrorIs(t, ourErr, ErrOutside)
			continue
		}
		require.Equal(t, theirErr == nil, ourErr == nil, "%d, then %d: %v, %v", i, n, theirErr, ourErr)
	}
	require.NotZero(t, accepted)
}

// The published rule on size 0 is newer than the release that is the oracle here: the release takes the empty tree for the beginning of any root.
func TestNothingIsConsistentWithTheEmptyTree(t *testing.T) {
	root := LeafHash([]byte("anything"))
	require.NoError(t, proof.VerifyConsistency(rfc6962.DefaultHasher, 0, 1, nil, root[:], root[:]))
	for _, sizes := range [][2]uint64{{0, 0}, {0, 1}, {0, 1 << 63}} {
		require.ErrorIs(t, VerifyConsistency(sizes[0], sizes[1], Empty(), Empty(), nil), ErrOutside)
		require.ErrorIs(t, VerifyConsistency(sizes[0], sizes[1], Empty(), root, []Hash{root}), ErrOutside)
	}
}

// Each fault has its name.
func TestWhatACheckFinds(t *testing.T) {
	leaves := numbered(7)
	root, older := Root(leaves), Root(leaves[:6])
	path := Inclusion(leaves, 4)
	require.ErrorIs(t, VerifyInclusion(leaves[4], 7, 7, path, root), ErrOutside)
	require.ErrorIs(t, VerifyInclusion(leaves[4], 0, 0, nil, Empty()), ErrOutside)
	require.ErrorIs(t, VerifyInclusion(leaves[4], 4, 7, path[1:], root), ErrLength)
	require.ErrorIs(t, VerifyInclusion(leaves[5], 4, 7, path, root), ErrRoot)
	require.ErrorIs(t, VerifyInclusion(leaves[4], 4, 7, path, older), ErrRoot)
	path = Consistency(leaves, 6)
	require.NoError(t, VerifyConsistency(6, 7, older, root, path))
	require.ErrorIs(t, VerifyConsistency(8, 7, older, root, path), ErrOutside)
	require.ErrorIs(t, VerifyConsistency(6, 7, older, root, nil), ErrLength)
	require.ErrorIs(t, VerifyConsistency(7, 7, root, root, path), ErrLength)
	require.ErrorIs(t, VerifyConsistency(7, 7, root, older, nil), ErrRoot)
	require.ErrorIs(t, VerifyConsistency(6, 7, root, root, path), ErrOldRoot)
	require.ErrorIs(t, VerifyConsistency(6, 7, older, older, path), ErrRoot)
	require.False(t, errors.Is(ErrRoot, ErrOldRoot))
}

func TestRangeEqualsTheLibrarys(t *testing.T) {
	factory := compact.RangeFactory{Hash: rfc6962.DefaultHasher.HashChildren}
	theirRange := factory.NewEmptyRange(0)
	var r Range
	for i, leaf := range numbered(1100) {
		require.NoError(t, theirRange.Append(leaf[:], nil))
		r.Append(leaf)
		require.Equal(t, ours(theirRange.Hashes()), r.peaks, i)
		require.Len(t, r.peaks, bits.OnesCount(uint(i+1)))
	}
}
