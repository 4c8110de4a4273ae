//go:build long

package infra_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTiers runs each tier's own tests: the whole tier with a provider that answers by itself, and each variable's rules.
func TestTiers(t *testing.T) {
	for _, tier := range tiers {
		t.Run(tier, func(t *testing.T) {
			t.Parallel()
			out, err := terraform(t.Context(), folder(t, tier), nil, "test")
			require.NoError(t, err, "%s", out)
			require.Regexp(t, `Success! [1-9][0-9]* passed, 0 failed\.`, out)
		})
	}
}
