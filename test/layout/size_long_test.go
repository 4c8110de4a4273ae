//go:build long

package layout_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/manifest"
)

// The largest that a function may be, in bytes: a cold start reads all of it. docs/performance.md has the figures.
const (
	largestTraced   = 30_000_000 // with X-Ray, as deployed
	largestUntraced = 16_000_000 // without X-Ray, -tags notrace
)

func TestAFunctionStaysSmall(t *testing.T) {
	traced, untraced := sizes(t, manifest.Tags), sizes(t, manifest.Tags+",notrace")
	var table strings.Builder
	lines := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(lines, "package\tfunction\twithout tracing\twith")
	for _, row := range rows(t).Rows {
		assert.LessOrEqual(t, untraced[row.Name], int64(largestUntraced), "%s without tracing", row.Name)
		assert.LessOrEqual(t, traced[row.Name], int64(largestTraced), "%s with tracing", row.Name)
		fmt.Fprintf(lines, "%s\t%s\t%.1f MB\t%.1f MB\n", row.Package, row.Name, float64(untraced[row.Name])/1e6, float64(traced[row.Name])/1e6)
	}
	require.NoError(t, lines.Flush())
	t.Log("\n" + table.String())
}

// sizes builds all functions with these tags, as cmd/pack builds them.
func sizes(t *testing.T, tags string) map[string]int64 {
	t.Helper()
	folder := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", folder+string(filepath.Separator), "-tags", tags, "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "./functions/...")
	build.Dir = root
	build.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	found := map[string]int64{}
	for _, row := range rows(t).Rows {
		built, err := os.Stat(filepath.Join(folder, row.Name))
		require.NoError(t, err)
		found[row.Name] = built.Size()
	}
	return found
}
