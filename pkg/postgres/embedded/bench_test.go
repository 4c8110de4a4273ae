//go:build unix

package embedded

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// An empty folder until the server answers, with everything on the disk; and a folder that was served before.
func BenchmarkStart(b *testing.B) {
	for name, keep := range map[string]bool{"first": false, "later": true} {
		b.Run(name, func(b *testing.B) {
			c := Config{Dir: b.TempDir(), Password: password, Durable: true}
			for b.Loop() {
				s, err := Start(b.Context(), c)
				require.NoError(b, err)
				b.StopTimer()
				require.NoError(b, s.Stop(b.Context()))
				if !keep {
					require.NoError(b, os.RemoveAll(c.Dir))
				}
				b.StartTimer()
			}
		})
	}
}
