package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestOrders(t *testing.T) {
	point, times := readOrder("tools started 3\n")
	require.Equal(t, "tools started", point)
	require.Equal(t, 3, times)
	for _, text := range []string{"", "tools started", "tools started 3", "3\n", "tools started \n"} {
		point, _ := readOrder(text)
		require.Empty(t, point, "%q", text)
	}
}

// What the report would find, were it there.
func TestWhatIsWrongIsFound(t *testing.T) {
	at := func(s int) *time.Time { t := time.Unix(int64(s), 0); return &t }
	h := history{ID: "CHAT-1"}
	h.Turns.Items = []turn{{ID: "a", StartedAt: at(1), FinishedAt: at(3)}, {ID: "b", StartedAt: at(3), FinishedAt: at(4)}, {ID: "c"}}
	require.Empty(t, h.overlaps())
	h.Turns.Items[1].StartedAt = at(2)
	require.Len(t, h.overlaps(), 1)
	require.Contains(t, h.overlaps()[0], "CHAT-1: turns a (")

	cost := "0.000120"
	sum, err := costs(turn{CostUSD: &cost}, turn{}, turn{CostUSD: &cost})
	require.NoError(t, err)
	require.EqualValues(t, 240, sum)
	require.Equal(t, "-$0.000240", dollars(-sum))

	var out strings.Builder
	r := &report{extra: 1}
	r.print(&out)
	require.Contains(t, out.String(), "WRONG: there are 1 messages more than were sent")
	require.NotContains(t, out.String(), "all as it must be")
}
