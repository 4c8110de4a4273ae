package webhook

import (
	"crypto/sha256"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestToken(t *testing.T) {
	const tokens = 20_000
	form, seen, counts := regexp.MustCompile(`^[A-Za-z0-9]{32}$`), map[string]bool{}, map[rune]int{}
	for range tokens {
		token := newToken()
		require.Regexp(t, form, token)
		require.False(t, seen[token])
		seen[token] = true
		for _, c := range token {
			counts[c]++
		}
	}
	require.Len(t, counts, 62)
	// Pearson's test: about 61, with a standard deviation of 11, for equal frequencies, and 4,000 for bytes taken modulo 62. Chance passes the
	// bound less than once in 10¹² runs.
	expected, sum := float64(tokens*tokenLength)/62, 0.0
	for _, n := range counts {
		sum += (float64(n) - expected) * (float64(n) - expected) / expected
	}
	require.Less(t, sum, 200.0)
}

func TestIsToken(t *testing.T) {
	token := newToken()
	stored := hash(token)
	require.Len(t, stored, sha256.Size)
	require.NotContains(t, string(stored), token)
	require.True(t, isToken(token, stored))
	for _, wrong := range []string{"", newToken(), token[:31], token + " ", " " + token, strings.ToLower(token) + "x", string(stored), string(make([]byte, sha256.Size))} {
		require.False(t, isToken(wrong, stored))
		require.False(t, isToken(wrong, nil), "no webhook")
	}
	require.False(t, isToken(token, nil))
	require.False(t, isToken(token, []byte{}))
	require.False(t, isToken(token, stored[:16]))
}

func TestMasked(t *testing.T) {
	require.Equal(t, strings.Repeat("*", 28)+"wxyz", masked("wxyz"))
}
