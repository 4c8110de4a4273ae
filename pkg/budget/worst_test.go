package budget_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentplatform/agentplatform/pkg/budget"
	"github.com/agentplatform/agentplatform/pkg/model"
)

// platform are the limits of a turn as the documents state them.
var platform = budget.Limits{Calls: 25, InputTokens: 100_000, OutputTokens: 4096}

const priced = `{"currency": "USD", "tokens": 1000000, "models": {
	"sonnet": [{"from": "2026-01-01", "input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75, "source": "test"},
		{"from": "2026-07-01", "input": 1, "output": 5, "cacheRead": 0.1, "cacheWrite": 1, "source": "test"}],
	"dear": [{"from": "2026-01-01", "input": 1000000, "output": 1000000, "cacheRead": 1000000, "cacheWrite": 1000000, "source": "test"}]}}`

func TestWorst(t *testing.T) {
	prices, err := model.ParsePrices([]byte(priced))
	require.NoError(t, err)
	tokens := func(n int64) *int64 { return &n }
	for name, c := range map[string]struct {
		model  string
		at     time.Time
		tokens *int64
		want   int64
	}{
		// A call: 100,000 × 3.75 (written to the cache) + 4,096 × 15 = 375,000 + 61,440 micros.
		"25 calls":                    {"sonnet", now, nil, 25 * 436_440},
		"25 calls at the price since": {"sonnet", now.AddDate(0, 6, 0), nil, 25 * (100_000 + 20_480)},
		// 50,000 × 15 as output, and a call.
		"few tokens": {"sonnet", now, tokens(50_000), 750_000 + 436_440},
		// 102,400 × 15 as output, 97,600 × 3.75 as input, and a call.
		"more tokens than answers hold": {"sonnet", now, tokens(200_000), 1_536_000 + 366_000 + 436_440},
		"more tokens than calls hold":   {"sonnet", now, tokens(math.MaxInt64), 25 * 436_440},
		"a token":                       {"sonnet", now, tokens(1), 15 + 436_440},
		"a dollar a token":              {"dear", now, nil, 25 * 104_096 * 1e6},
	} {
		got, known := platform.Worst(prices, c.model, c.tokens, c.at)
		require.True(t, known, name)
		require.Equal(t, c.want, got, name)
	}
	for _, at := range []time.Time{now, {}} {
		_, known := platform.Worst(prices, map[bool]string{true: "sonnet", false: "unknown"}[at.IsZero()], nil, at)
		require.False(t, known)
	}
}

// No turn that keeps to its limits costs more than its worst: whatever its calls, and wherever a cap on tokens stops it.
func TestNoTurnCostsMoreThanItsWorst(t *testing.T) {
	prices, err := model.ParsePrices([]byte(priced))
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		var cap *int64
		if rapid.Bool().Draw(t, "capped") {
			n := rapid.Int64Range(1, 3_000_000).Draw(t, "cap")
			cap = &n
		}
		var used model.Usage
		var micros int64
		for range rapid.IntRange(1, platform.Calls).Draw(t, "calls") {
			input := rapid.IntRange(0, platform.InputTokens).Draw(t, "input")
			written := rapid.IntRange(0, input).Draw(t, "written")
			read := rapid.IntRange(0, input-written).Draw(t, "read")
			used = used.Add(model.Usage{InputTokens: input - written - read, CacheWriteTokens: written, CacheReadTokens: read,
				OutputTokens: rapid.IntRange(0, platform.OutputTokens).Draw(t, "output")})
			micros, _ = prices.Cost("sonnet", used, now)
			if cap != nil && int64(used.Total()) >= *cap {
				break
			}
		}
		worst, _ := platform.Worst(prices, "sonnet", cap, now)
		require.LessOrEqual(t, micros, worst)
	})
}
