package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A platform whose database has died says so and ends; the next start has everything that was committed.
func TestDatabaseDies(t *testing.T) {
	t.Parallel()
	p := startPlatform(t)
	raw, err := os.ReadFile(filepath.Join(p.dir, "postgres", "data", "postmaster.pid"))
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.Fields(string(raw))[0])
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	require.Equal(t, 1, p.exit())
	require.Contains(t, p.stderr.String(), "PostgreSQL has ended")
	again := startOn(t, p.dir)
	require.Contains(t, again.output.String(), "opened CHAT-2")
}
