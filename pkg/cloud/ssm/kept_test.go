package ssm

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestKeptIsGivenBack(t *testing.T) {
	for value, want := range map[string]string{`{"a":{"b":1}}`: `{"a":{"b":1}}`, "{{x}}": `{\{x}}`, "{{{": `{\{\{`, `{\`: `{\\`, `{\{`: `{\\{`, `\{`: `\{`} {
		require.Equal(t, want, kept(value))
	}
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringOf(rapid.SampledFrom([]rune(`{{{\\}a`))).Draw(t, "value")
		require.Equal(t, value, given(kept(value)))
		require.NotContains(t, kept(value), "{{")
	})
}
