package text_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentplatform/agentplatform/pkg/text"
)

func TestCut(t *testing.T) {
	for _, c := range []struct {
		s    string
		max  int
		want string
	}{{"", 0, ""}, {"abc", 3, "abc"}, {"abc", 2, "ab"}, {"é", 1, ""}, {"é", 2, "é"}, {"a\n", 2, "a"}, {"a\n", 3, "a\n"}, {"<<", 6, "<"}, {`""`, 3, `"`}, {"\x01", 5, ""}, {"\u2028", 6, "\u2028"}} {
		got, short := text.Cut(c.s, c.max)
		require.Equal(t, c.want, got, "%q %d", c.s, c.max)
		require.Equal(t, c.want != c.s, short)
	}
}

func TestCutFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, max := rapid.String().Draw(t, "s"), rapid.IntRange(0, 60).Draw(t, "max")
		got, short := text.Cut(s, max)
		encoded, err := json.Marshal(got)
		if err != nil || len(encoded)-2 > max || !strings.HasPrefix(s, got) || short != (got != s) || !utf8.ValidString(got) {
			t.Fatalf("%q of %q: %d bytes of %d", got, s, len(encoded)-2, max)
		}
	})
}
