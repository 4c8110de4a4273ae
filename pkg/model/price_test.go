package model

import (
	"fmt"
	"math"
	"math/big"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var someday = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func shipped(t testing.TB) Prices {
	data, err := os.ReadFile("../../schema/prices.json")
	require.NoError(t, err)
	p, err := ParsePrices(data)
	require.NoError(t, err)
	return p
}

func TestShippedPrices(t *testing.T) {
	p := shipped(t)
	million := Usage{InputTokens: 1e6, OutputTokens: 1e6, CacheReadTokens: 1e6, CacheWriteTokens: 1e6}
	for id, dollars := range map[string]float64{
		"anthropic.claude-sonnet-4-5-20250929-v1:0":                                                            3.3 + 16.5 + 0.33 + 4.125,
		"us.anthropic.claude-sonnet-4-5-20250929-v1:0":                                                         3.3 + 16.5 + 0.33 + 4.125,
		"eu.anthropic.claude-sonnet-4-5-20250929-v1:0":                                                         3.3 + 16.5 + 0.33 + 4.125,
		"global.anthropic.claude-sonnet-4-5-20250929-v1:0":                                                     3 + 15 + 0.3 + 3.75,
		"arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.anthropic.claude-haiku-4-5-20251001-v1:0": 1.1 + 5.5 + 0.11 + 1.375,
		"arn:aws:bedrock:eu-west-1::foundation-model/anthropic.claude-opus-4-1-20250805-v1:0":                  15 + 75 + 1.5 + 18.75,
		"global.anthropic.claude-opus-4-5-20251101-v1:0":                                                       5 + 25 + 0.5 + 6.25,
		"global.anthropic.claude-sonnet-4-20250514-v1:0":                                                       3 + 15 + 0.3 + 3.75,
		"offline.echo-1": 0.1 + 0.5 + 0.01 + 0.125,
	} {
		cost, known := p.Cost(id, million, someday)
		require.True(t, known, id)
		require.Equal(t, int64(math.Round(dollars*1e6)), cost, id)
	}
	for _, id := range []string{"", "us.", "arn:", "gpt-4", "xx.offline.echo-1", "global.global.offline.echo-1", "arn:aws:bedrock:x:1:application-inference-profile/abc"} {
		_, known := p.Cost(id, million, someday)
		require.False(t, known, id)
	}
	for id, prices := range p.models { // the file's slips: a column swapped or a zero forgotten
		for _, row := range prices {
			require.Equal(t, row.input*5, row.output, id)
			require.Equal(t, row.input, row.cacheRead*10, id)
			require.Equal(t, row.input*5, row.cacheWrite*4, id)
			require.NotZero(t, row.input, id)
		}
	}
}

const table = `{"currency":"USD","tokens":1000000,"models":{"m":[
	{"from":"2026-03-01","input":0.5,"output":2,"cacheRead":0.000001,"cacheWrite":1000000,"source":"test"},
	{"from":"2026-01-01","input":1,"output":4,"cacheRead":0,"cacheWrite":0,"source":"test","comment":"old"}]}}`

func TestPricesByDate(t *testing.T) {
	p, err := ParsePrices([]byte(table))
	require.NoError(t, err)
	usage := Usage{InputTokens: 10, OutputTokens: 10}
	for day, want := range map[string]int64{"2026-01-01": 50, "2026-02-28": 50, "2026-03-01": 25, "2030-01-01": 25} {
		at, err := time.Parse(time.DateOnly, day)
		require.NoError(t, err)
		cost, known := p.Cost("m", usage, at)
		require.True(t, known)
		require.Equal(t, want, cost, day)
	}
	_, known := p.Cost("m", usage, time.Date(2025, 12, 31, 23, 59, 59, 0, time.UTC))
	require.False(t, known)
	// One second before midnight UTC is still the old price, whatever the clock's zone.
	cost, _ := p.Cost("m", usage, time.Date(2026, 3, 1, 0, 59, 59, 0, time.FixedZone("", 3600)))
	require.Equal(t, int64(50), cost)
}

func TestCostRoundsHalfUpOnce(t *testing.T) {
	p, err := ParsePrices([]byte(table))
	require.NoError(t, err)
	for _, c := range []struct {
		usage Usage
		want  int64
	}{
		{Usage{}, 0},
		{Usage{InputTokens: 1}, 1}, // 0.5
		{Usage{InputTokens: 3}, 2}, // 1.5
		{Usage{InputTokens: 2, CacheReadTokens: 400_000}, 1},             // 1.4
		{Usage{CacheReadTokens: 499_999}, 0},                             // 0.499999
		{Usage{CacheReadTokens: 500_000}, 1},                             // 0.5
		{Usage{InputTokens: 1, CacheReadTokens: 999_999}, 1},             // 1.499999
		{Usage{InputTokens: -5, OutputTokens: 1}, 2},                     // counts below nothing are nothing
		{Usage{CacheWriteTokens: math.MaxInt64}, math.MaxInt64},          // overflows: the cap
		{Usage{OutputTokens: math.MaxInt64}, math.MaxInt64},              // just above int64
		{Usage{InputTokens: math.MaxInt64}, (math.MaxInt64 + 1) / 2 * 1}, // half of it, rounded up
	} {
		cost, known := p.Cost("m", c.usage, someday)
		require.True(t, known)
		require.Equal(t, c.want, cost, "%+v", c.usage)
	}
}

func TestCostEqualsExactArithmetic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		prices, counts := make([]uint64, 4), make([]int, 4)
		sum := big.NewInt(scale / 2)
		for i := range 4 {
			prices[i] = rapid.Uint64Range(0, maxPrice).Draw(t, "price")
			counts[i] = rapid.IntRange(0, math.MaxInt64).Draw(t, "count")
			sum.Add(sum, new(big.Int).Mul(new(big.Int).SetUint64(prices[i]), big.NewInt(int64(counts[i]))))
		}
		want := sum.Div(sum, big.NewInt(scale))
		if !want.IsInt64() {
			want = big.NewInt(math.MaxInt64)
		}
		p := Prices{models: map[string][]price{"m": {{input: prices[0], output: prices[1], cacheRead: prices[2], cacheWrite: prices[3]}}}}
		cost, known := p.Cost("m", Usage{counts[0], counts[1], counts[2], counts[3]}, someday)
		if !known || cost != want.Int64() {
			t.Fatalf("got %d, want %d", cost, want)
		}
	})
}

func TestPriceTableIsRead(t *testing.T) {
	row := func(s string) string {
		return fmt.Sprintf(`{"currency":"USD","tokens":1000000,"models":{"m":[%s]}}`, s)
	}
	good := `{"from":"2026-01-01","input":1,"output":1,"cacheRead":1,"cacheWrite":1,"source":"s"}`
	_, err := ParsePrices([]byte(row(good)))
	require.NoError(t, err)
	for name, data := range map[string]string{
		"empty":            ``,
		"text after":       row(good) + "{}",
		"currency":         strings.Replace(row(good), "USD", "EUR", 1),
		"unit":             strings.Replace(row(good), "1000000", "1000", 1),
		"no rows":          row(""),
		"unknown field":    row(strings.Replace(good, "source", "sauce", 1)),
		"unknown field 2":  strings.Replace(row(good), `"currency"`, `"x":1,"currency"`, 1),
		"missing price":    row(strings.Replace(good, `"output":1,`, ``, 1)),
		"null price":       row(strings.Replace(good, `"output":1`, `"output":null`, 1)),
		"negative":         row(strings.Replace(good, `"output":1`, `"output":-1`, 1)),
		"exponent":         row(strings.Replace(good, `"output":1`, `"output":1e3`, 1)),
		"seven decimals":   row(strings.Replace(good, `"output":1`, `"output":0.0000001`, 1)),
		"a dollar a token": row(strings.Replace(good, `"output":1`, `"output":1000000.000001`, 1)),
		"huge":             row(strings.Replace(good, `"output":1`, `"output":99999999999999999999`, 1)),
		"text price":       row(strings.Replace(good, `"output":1`, `"output":"cheap"`, 1)),
		"bad day":          row(strings.Replace(good, `2026-01-01`, `2026-13-01`, 1)),
		"same day":         row(good + "," + good),
		"no source":        row(strings.Replace(good, `"source":"s"`, `"source":""`, 1)),
	} {
		_, err := ParsePrices([]byte(data))
		require.Error(t, err, name)
	}
}
