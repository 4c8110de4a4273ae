//go:build long

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// lines is a writer into the test's log.
type lines struct{ testing.TB }

func (l lines) Write(text []byte) (int, error) {
	l.Logf("%s", text)
	return len(text), nil
}

// TestChaos is `make chaos`, in short.
func TestChaos(t *testing.T) {
	c := chaos{out: lines{t}, length: 15 * time.Second, conversations: 8, seed: uint64(time.Now().UnixNano()) >> 32, program: program, verifier: verifier}
	ok, err := c.run(t.Context())
	require.NoError(t, err)
	require.True(t, ok)
	require.Positive(t, c.kills)
}
