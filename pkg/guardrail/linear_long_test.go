//go:build long

package guardrail

import (
	"slices"
	"testing"
)

func TestNoMebibyteTakesLong(t *testing.T) {
	for _, unit := range busy {
		readAll(t, unit, 1<<20, everything...)
		readAll(t, unit, 1<<17, slices.Concat(ambiguous, everything)...)
	}
}
