package merkle

import (
	"encoding"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var (
	_ encoding.BinaryMarshaler   = Range{}
	_ encoding.BinaryAppender    = Range{}
	_ encoding.BinaryUnmarshaler = &Range{}
)

// A state that was written down and read again goes on as if it never had been.
func TestRangeRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		leaves := numbered(rapid.IntRange(0, 400).Draw(t, "leaves"))
		stop := rapid.IntRange(0, len(leaves)).Draw(t, "stop")
		var r Range
		for _, leaf := range leaves[:stop] {
			r.Append(leaf)
		}
		text, err := r.MarshalBinary()
		require.NoError(t, err)
		require.Equal(t, uint64(stop), binary.BigEndian.Uint64(text))
		var back Range
		require.NoError(t, back.UnmarshalBinary(text))
		require.Equal(t, r.Root(), back.Root())
		for _, leaf := range leaves[stop:] {
			back.Append(leaf)
		}
		require.Equal(t, Root(leaves), back.Root())
		require.Equal(t, Root(leaves[:stop]), r.Root())
		again, err := r.AppendBinary([]byte("before"))
		require.NoError(t, err)
		require.Equal(t, "before"+string(text), string(again))
	})
}

func TestRangeRefusesWhatItDidNotWrite(t *testing.T) {
	var r Range
	for _, leaf := range numbered(11) {
		r.Append(leaf)
	}
	text, err := r.MarshalBinary()
	require.NoError(t, err)
	root := r.Root()
	for n := range text {
		require.Error(t, r.UnmarshalBinary(text[:n]), n)
	}
	require.Error(t, r.UnmarshalBinary(append(text, 0)))
	require.Error(t, r.UnmarshalBinary(append(text, make([]byte, 32)...)))
	text[7] = 12 // two hashes, not three
	require.Error(t, r.UnmarshalBinary(text))
	require.Equal(t, root, r.Root(), "after an error it is as it was")
	require.Equal(t, uint64(11), r.Size())
	require.NoError(t, r.UnmarshalBinary(make([]byte, 8)))
	require.Equal(t, Empty(), r.Root())
}

// A clone and its original do not see each other's leaves.
func TestRangeClone(t *testing.T) {
	leaves := numbered(40)
	for n := range leaves {
		var r Range
		for _, leaf := range leaves[:n] {
			r.Append(leaf)
		}
		one, two := r.Clone(), r.Clone()
		one.Append(leaves[n])
		two.Append(leaves[0])
		two.Append(leaves[0])
		r.Append(leaves[n])
		require.Equal(t, Root(leaves[:n+1]), one.Root())
		require.Equal(t, Root(leaves[:n+1]), r.Root())
		require.Equal(t, uint64(n+2), two.Size())
	}
}

// The prover gives the path of Inclusion after every leaf, from the one it proves on.
func TestProver(t *testing.T) {
	leaves := numbered(140)
	for index := range uint64(len(leaves)) {
		p := NewProver(index)
		for n, leaf := range leaves {
			p.Append(leaf)
			size := uint64(n + 1)
			require.Equal(t, size, p.Size())
			if size <= index {
				require.Nil(t, p.Path())
				continue
			}
			if index%7 == 0 || size%5 == 0 || size == index+1 {
				require.Equal(t, Inclusion(leaves[:size], index), p.Path())
				require.NoError(t, VerifyInclusion(leaves[index], index, size, p.Path(), p.Root()))
			}
		}
		require.Equal(t, Root(leaves), p.Root())
	}
}

func TestProverOfALongStream(t *testing.T) {
	leaves := numbered(5_000)
	for _, index := range []uint64{0, 1, 2047, 2048, 4095, 4096, 4998, 4999} {
		p := NewProver(index)
		for _, leaf := range leaves {
			p.Append(leaf)
		}
		require.Equal(t, Inclusion(leaves, index), p.Path())
		require.LessOrEqual(t, len(p.below)+len(p.state.peaks), 26, "memory for log n hashes")
	}
}

// What cannot be proven is a fault of the program.
func TestImpossibleProofsPanic(t *testing.T) {
	leaves := numbered(3)
	var tree Tree
	for _, leaf := range leaves {
		tree.Append(leaf)
	}
	for _, impossible := range []func(){
		func() { Inclusion(leaves, 3) }, func() { Inclusion(nil, 0) }, func() { Consistency(leaves, 0) }, func() { Consistency(leaves, 4) },
		func() { tree.Inclusion(3, 3) }, func() { tree.Inclusion(0, 4) }, func() { tree.Consistency(0, 3) }, func() { tree.Consistency(3, 2) }, func() { tree.Consistency(1, 4) },
	} {
		require.Panics(t, impossible)
	}
}
