package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// infra/README.md says what make rehearse prints.
func TestTheLimitsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../infra/README.md")
	require.NoError(t, err)
	require.Contains(t, string(text), limits(), "the lists in infra/README.md against limits.go and standin.Services; put there:\n%s", limits())
}
