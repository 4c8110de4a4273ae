// Package mcp gives tests the MCP project's own test server (npm @modelcontextprotocol/server-everything, pinned by package-lock.json). Without node or npm the
// test fails.
package mcp

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/test/npm"
)

// Everything starts the server, which ends with the test, and gives the URL to connect to. It speaks streamable HTTP, or with sse the transport before it.
func Everything(t testing.TB, sse bool) string {
	t.Helper()
	_, self, _, ok := runtime.Caller(0)
	require.True(t, ok)
	folder := filepath.Dir(self)
	npm.Install(t, folder)
	transport, path := "streamableHttp", "/mcp"
	if sse {
		transport, path = "sse", "/sse"
	}
	server := exec.Command("node", "--import", "./listen.mjs", "node_modules/@modelcontextprotocol/server-everything/dist/index.js", transport)
	server.Dir = folder
	stdin, err := server.StdinPipe()
	require.NoError(t, err)
	stdout, err := server.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, server.Start())
	port, ended := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			if p, ok := strings.CutPrefix(lines.Text(), "listening on "); ok {
				port <- p
			}
		}
	}()
	t.Cleanup(func() {
		require.NoError(t, stdin.Close())
		<-ended
		require.NoError(t, server.Wait())
	})
	select {
	case p := <-port:
		return "http://127.0.0.1:" + p + path
	case <-ended:
	case <-time.After(time.Minute):
	}
	require.FailNow(t, "server-everything did not start")
	return ""
}
