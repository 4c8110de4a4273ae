package merkle

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// probe is a proof of testdata, good or bad.
type probe struct {
	Name    string
	WantErr bool
	Proof   [][]byte

	LeafIdx, TreeSize uint64
	Root, LeafHash    []byte

	Size1, Size2 uint64
	Root1, Root2 []byte
}

func probes(t *testing.T, file string) (list []probe) {
	text, err := os.ReadFile("testdata/" + file)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &list))
	require.Len(t, list, 98)
	return list
}

// hashes turns what a probe says into our types; ok is false where it is no SHA-256 at all, which our types cannot hold and a reader of proofs refuses. "don't care"
// stands for any root.
func hashes(texts ...[]byte) (list []Hash, ok bool) {
	for _, text := range texts {
		var h Hash
		if len(text) != len(h) && !strings.HasPrefix(string(text), "don't care") {
			return nil, false
		}
		copy(h[:], text)
		list = append(list, h)
	}
	return list, true
}

func TestPublishedInclusionProbes(t *testing.T) {
	good := 0
	for _, p := range probes(t, "inclusion.json") {
		t.Run(p.Name, func(t *testing.T) {
			path, ok := hashes(p.Proof...)
			ends, ok2 := hashes(p.LeafHash, p.Root)
			if !ok || !ok2 {
				require.True(t, p.WantErr)
				return
			}
			err := VerifyInclusion(ends[0], p.LeafIdx, p.TreeSize, path, ends[1])
			if p.WantErr {
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			good++
		})
	}
	require.Equal(t, 6, good)
}

func TestPublishedConsistencyProbes(t *testing.T) {
	good := 0
	for _, p := range probes(t, "consistency.json") {
		t.Run(p.Name, func(t *testing.T) {
			path, ok := hashes(p.Proof...)
			roots, ok2 := hashes(p.Root1, p.Root2)
			if !ok || !ok2 {
				require.True(t, p.WantErr)
				return
			}
			err := VerifyConsistency(p.Size1, p.Size2, roots[0], roots[1], path)
			if p.WantErr {
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			good++
		})
	}
	require.Equal(t, 6, good)
}
