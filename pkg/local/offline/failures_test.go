package offline

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFailuresAreBounded(t *testing.T) {
	f := newFailures(3)
	for i := range 100 {
		require.True(t, f.next("m", []byte(strconv.Itoa(i)), 5))
		require.LessOrEqual(t, len(f.counts), 3)
		require.Len(t, f.order, len(f.counts))
	}
	require.True(t, f.next("m", []byte("99"), 2))
	require.False(t, f.next("m", []byte("99"), 2))
	require.Len(t, f.order, 2)
}
