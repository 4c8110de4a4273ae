package merkle

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkAppend adds a leaf to a state: what the drainer and the verifier do for each event.
func BenchmarkAppend(b *testing.B) {
	leaf := LeafHash([]byte("leaf"))
	var r Range
	b.ReportAllocs()
	for b.Loop() {
		r.Append(leaf)
	}
}

func BenchmarkLeafHash(b *testing.B) {
	event := LeafHash([]byte("event"))
	b.ReportAllocs()
	for b.Loop() {
		LeafHash(event[:])
	}
}

// BenchmarkRoot is of the 10,000 heads of an anchor.
func BenchmarkRoot(b *testing.B) {
	leaves := numbered(10_000)
	b.ReportAllocs()
	for b.Loop() {
		Root(leaves)
	}
}

// BenchmarkInclusion makes and checks the proof of a leaf among a million.
func BenchmarkInclusion(b *testing.B) {
	leaves := numbered(1_000_000)
	var tree Tree
	for _, leaf := range leaves {
		tree.Append(leaf)
	}
	root, size := tree.Root(), tree.Size()
	i := uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		i = (i + 7919) % size
		require.NoError(b, VerifyInclusion(leaves[i], i, size, tree.Inclusion(i, size), root))
	}
}
