package embed

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/model"
)

func TestUnit(t *testing.T) {
	v, ok := Unit([]float64{3, 0, -4})
	require.True(t, ok)
	require.Equal(t, []float32{0.6, 0, -0.8}, v)
	for _, scale := range []float64{1e-320, 1e-160, 1e160, 1e308} { // squares that are 0, or infinite
		v, ok = Unit([]float64{scale, scale})
		require.True(t, ok)
		require.InDelta(t, math.Sqrt2/2, v[0], 1e-6, "%g", scale)
		require.Equal(t, v[0], v[1])
	}
	for _, none := range [][]float64{nil, {0, 0}, {math.NaN(), 1}, {1, math.Inf(-1)}} {
		_, ok = Unit(none)
		require.False(t, ok)
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int
		want string
	}{{"", 0, ""}, {"abc", 0, ""}, {"abc", 2, "ab"}, {"abc", 3, "abc"}, {"abc", 9, "abc"}, {"äöü", 2, "äö"}, {"ä", 1, "ä"}, {"日本語", 1, "日"}, {"\xff\xffa", 2, "\xff\xff"}} {
		require.Equal(t, c.want, Cut(c.text, c.n))
	}
}

// Every reason that an embedding can fail for has words of its own, which a cause does not get into.
func TestWordsOfFailures(t *testing.T) {
	for reason, message := range messages {
		e := Failure(reason, true, errors.New("secret"))
		require.Equal(t, message, e.Message)
		require.NotContains(t, e.Message, "language model")
		require.True(t, e.Temporary())
		require.Equal(t, reason, e.Reason)
	}
	ctx, cancel := context.WithCancel(t.Context())
	require.Equal(t, messages[model.Unavailable], Failed(ctx, errors.New("connection refused")).Message)
	own := refused("Text 1 is blank.")
	require.Equal(t, "Text 1 is blank.", Failed(ctx, own).Message)
	cancel()
	require.Equal(t, model.Canceled, Failed(ctx, errors.New("whatever")).Reason)
}

func FuzzPrepare(f *testing.F) {
	f.Add("text")
	f.Add("\xff")
	f.Add(strings.Repeat("\xe6\x97", MaxCharacters+1))
	f.Add(strings.Repeat(" ", MaxCharacters) + "x")
	f.Fuzz(func(t *testing.T, text string) {
		prepared, err := Prepare([]string{text})
		if err != nil {
			require.Empty(t, strings.TrimSpace(Cut(text, MaxCharacters)))
			return
		}
		require.True(t, utf8.ValidString(prepared[0]))
		require.LessOrEqual(t, utf8.RuneCountInString(prepared[0]), MaxCharacters)
		require.NotEmpty(t, strings.TrimSpace(prepared[0]))
	})
}
