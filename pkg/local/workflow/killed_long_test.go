//go:build long

package workflow

import "testing"

// An engine dies at each point that it comes to, whatever it has done before.
func TestKilledAnywhere(t *testing.T) {
	w := newWorld(t)
	for nth, died := 1, true; died; nth++ {
		_, died = w.killed(func(n int, _ string) bool { return n == nth })
	}
}
