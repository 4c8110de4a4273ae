package anchor_test

import (
	"bytes"
	"testing"

	"github.com/agentplatform/agentplatform/pkg/audit/anchor"
	"github.com/stretchr/testify/require"
)

// FuzzProof: a file that is not refused is the one that Build makes of what it says.
func FuzzProof(f *testing.F) {
	w := newWorld(f)
	keys := []anchor.Verifier{w.key.verifier(f, origin)}
	for _, p := range []anchor.Proof{w.prove(1, 1, 1), w.prove(0, 2, 2), w.prove(1, 4, 4)} {
		file, err := p.Build()
		require.NoError(f, err)
		f.Add(file)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		r, err := anchor.Check(file, keys)
		if err != nil {
			return
		}
		again, err := r.Build()
		require.NoError(t, err)
		require.Equal(t, string(bytes.TrimSuffix(file, []byte("\n"))), string(again))
	})
}

// FuzzParse: an object that is not refused is the one that Seal makes of what it says.
func FuzzParse(f *testing.F) {
	w := newWorld(f)
	for _, a := range w.anchors {
		f.Add(a.object)
	}
	f.Fuzz(func(t *testing.T, object []byte) {
		a, err := anchor.Parse(object)
		if err != nil {
			return
		}
		require.True(t, bytes.HasPrefix(object, append([]byte(`{"header":`), a.Header.Append(nil)...)))
		if i := int(a.Header.Number) - 1; i < len(w.anchors) && a.HeaderSHA256 == w.anchors[i].HeaderSHA256 && a.Checkpoint == w.anchors[i].Checkpoint {
			require.Equal(t, string(w.anchors[i].object), string(object))
		}
	})
}
