// Package pgvector gives tests a PostgreSQL that has the extension vector, which the machine's own server need not have: PGlite, from npm, behind a socket.
//
// It has one session, whoever connects: a connection must have ended before the next one can be made, and finds what that one has set and prepared (so the
// URL has pgx prepare nothing by name); a role is taken by `set role`, and nobody is asked for a password. It is in memory, and ends with the test.
package pgvector

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/test/npm"
)

// Start gives the URL of an empty database's superuser.
func Start(t testing.TB) (url string) {
	t.Helper()
	_, self, _, ok := runtime.Caller(0)
	require.True(t, ok)
	folder := filepath.Dir(self)
	npm.Install(t, folder)
	server := exec.Command("node", "server.mjs")
	server.Dir, server.Stderr = folder, os.Stderr
	in, err := server.StdinPipe()
	require.NoError(t, err)
	out, err := server.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, server.Start())
	t.Cleanup(func() {
		require.NoError(t, in.Close())
		require.NoError(t, server.Wait())
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	return "postgres://postgres@" + strings.TrimSpace(address) + "/postgres?sslmode=disable&default_query_exec_mode=describe_exec"
}
