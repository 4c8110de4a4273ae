package page

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
)

type cursor struct{ N int }

func TestTokenOpensOnlyItsOwnList(t *testing.T) {
	key := Key("0123456789abcdef")
	p := Cut(key, []int{1, 2, 3}, 2, func(n int) cursor { return cursor{n} }, "tenant-a", "list", "open")
	require.Equal(t, []int{1, 2}, p.Items)

	size, after, err := Start[cursor](key, Request{NextToken: p.NextToken}, "tenant-a", "list", "open")
	require.NoError(t, err)
	require.Equal(t, 50, size)
	require.Equal(t, &cursor{2}, after)

	flipped := []byte(*p.NextToken)
	flipped[5] ^= 1
	forged := string(flipped)
	garbage := "not base64!"
	short := "AAAA"
	broken := (*p.NextToken)[:4] + "\n" + (*p.NextToken)[4:]
	for name, open := range map[string]struct {
		key   Key
		token *string
		scope []any
	}{
		"another tenant": {key, p.NextToken, []any{"tenant-b", "list", "open"}},
		"another filter": {key, p.NextToken, []any{"tenant-a", "list", "closed"}},
		"another list":   {key, p.NextToken, []any{"tenant-a", "turns", "open"}},
		"another key":    {Key("another"), p.NextToken, []any{"tenant-a", "list", "open"}},
		"forged":         {key, &forged, []any{"tenant-a", "list", "open"}},
		"garbage":        {key, &garbage, []any{"tenant-a", "list", "open"}},
		"line end":       {key, &broken, []any{"tenant-a", "list", "open"}},
		"short":          {key, &short, []any{"tenant-a", "list", "open"}},
	} {
		_, _, err := Start[cursor](open.key, Request{NextToken: open.token}, open.scope...)
		require.Error(t, err, name)
		require.Equal(t, fault.ValidationError, fault.From(err).Type, name)
	}
}

func TestLastPageHasNoToken(t *testing.T) {
	p := Cut[int](Key("k"), nil, 2, func(n int) cursor { return cursor{n} })
	require.NotNil(t, p.Items)
	require.Nil(t, p.NextToken)
	require.Nil(t, Cut(Key("k"), []int{1, 2}, 2, func(n int) cursor { return cursor{n} }).NextToken)
}

func TestLimits(t *testing.T) {
	for limit, ok := range map[int]bool{0: false, -1: false, 1: true, 100: true, 101: false} {
		_, err := Request{Limit: &limit}.size()
		require.Equal(t, ok, err == nil, limit)
	}
	size, err := Request{}.size()
	require.NoError(t, err)
	require.Equal(t, 50, size)
}
