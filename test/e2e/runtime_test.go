package e2e

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTurnsInARuntime: the first conversation, its turn in a runtime that was started with what the platform wrote for it, its text streamed
// through the platform's own sockets.
func TestTurnsInARuntime(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "agent-runtime")
	out, err := exec.Command("go", "build", "-o", program, "../../cmd/agent-runtime").CombinedOutput()
	require.NoError(t, err, "%s", out)
	dir, port := dataDir(t), freePort(t)
	platform, err := launch(command(dir, []string{"AGENT_RUNTIMES=default=http://127.0.0.1:" + port}, "--once"))
	require.NoError(t, err)
	settings := filepath.Join(dir, "runtime.env")
	require.Eventually(t, func() bool {
		_, err := os.Stat(settings)
		return err == nil
	}, startTime, 10*time.Millisecond, platform.output.String())

	cmd := exec.Command(program)
	cmd.Env = append(settingsIn(t, settings), "PORT="+port)
	runtime, err := launch(cmd)
	require.NoError(t, err)
	require.Equal(t, 0, platform.exit(), platform.output)
	require.Contains(t, platform.output.String(), "first reply")
	runtime.signal(syscall.SIGTERM)
	require.Equal(t, 0, runtime.exit(), runtime.output)
	require.NotContains(t, runtime.output.String(), `"level":"ERROR"`)
}

// settingsIn are a file's NAME=value lines.
func settingsIn(t *testing.T, path string) (env []string) {
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	info, err := f.Stat()
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "it holds a password")
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		require.Contains(t, lines.Text(), "=")
		env = append(env, strings.TrimSpace(lines.Text()))
	}
	return env
}

// TestARuntimeAtAWSIsRefused: it could not reach this machine's database.
func TestARuntimeAtAWSIsRefused(t *testing.T) {
	t.Parallel()
	const arn = "arn:aws:bedrock-agentcore:eu-central-1:123456789012:runtime/agentplatform-a1b2c3d4e5"
	refused(t, command(dataDir(t), []string{"AGENT_RUNTIMES=default=" + arn}), "AGENT_RUNTIMES: default is at AWS")
	refused(t, command(dataDir(t), []string{"AGENT_RUNTIMES=default"}), `AGENT_RUNTIMES: "default" is not selector=target`)
}
