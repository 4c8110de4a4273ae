package bench

import (
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	workers "github.com/agentplatform/agentplatform/pkg/local/sandbox"
	"github.com/agentplatform/agentplatform/pkg/sandbox"
)

// BenchmarkScript: a script of one line, from the call to its value, in a process of its own: this program, which has the whole platform in it. The floor is
// the start and the end of a process that does nothing.
func BenchmarkScript(b *testing.B) {
	s, err := workers.Open(workers.Config{Dir: filepath.Join(b.TempDir(), "empty")})
	must(b, err)
	one := sandbox.Script{Language: sandbox.JavaScript, Code: "return 6 * 7"}
	measure := func(b *testing.B, do func() error) {
		var took []time.Duration
		for range min(b.N, 500) {
			began := time.Now()
			must(b, do())
			took = append(took, time.Since(began))
		}
		b.ReportMetric(percentile(took, 50), "p50-ms")
		b.ReportMetric(percentile(took, 95), "p95-ms")
		b.ReportMetric(0, "ns/op")
	}
	b.Run("script", func(b *testing.B) {
		measure(b, func() error {
			r, err := s.Run(b.Context(), one)
			if err == nil && string(r.Value) != "42" {
				b.Fatalf("%+v", r)
			}
			return err
		})
	})
	b.Run("floor", func(b *testing.B) { measure(b, func() error { return exec.Command("/bin/true").Run() }) })
}
