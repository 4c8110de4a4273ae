//go:build long

package canonical

import "testing"

// 300,000 documents through this package, two libraries and encoding/json.
func TestDifferentialLong(t *testing.T) { differential(t, 300_000) }
