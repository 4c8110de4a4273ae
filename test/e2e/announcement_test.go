package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What the platform prints to be copied works as it is printed.
func TestPrintedCommandsWork(t *testing.T) {
	t.Parallel()
	p := startPlatform(t, `LOCAL_PASSWORD=by hand "$x" \\ & more`) // whose newest thread is the first conversation
	printed := p.output.String()
	_, rest, found := strings.Cut(printed, "\nTry it:\n")
	require.True(t, found, printed)
	commands, _, found := strings.Cut(rest, "\nCtrl-C stops")
	require.True(t, found, rest)
	copied := exec.Command("bash", "-euo", "pipefail", "-c", commands)
	copied.Dir = "../.." // where make run was typed
	out, err := copied.CombinedOutput()
	require.NoError(t, err, "%s\n%s", commands, out)
	require.Contains(t, string(out), `"agent":{"name":"Ada"}`)
	require.Contains(t, string(out), `"role":"assistant"`)
	require.NotContains(t, string(out), "errorType")

	out, err = exec.Command("bash", "-euc", `. "$1"; printf %s "$LOCAL_PASSWORD"`, "bash", filepath.Join(p.dir, "secrets.env")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, p.Password, string(out), "a shell may source the secrets")
}
