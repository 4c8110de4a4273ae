//go:build long

package intake_test

import "testing"

func TestNoMebibyteTakesLong(t *testing.T) {
	for _, unit := range busy {
		readAll(t, unit, 1<<20-1<<10)
	}
}
