//go:build long

package canonical

import "testing"

// A million documents through this package, two libraries and encoding/json.
func TestDifferentialLong(t *testing.T) { differential(t, 1_000_000) }
