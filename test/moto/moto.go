// Package moto gives tests moto's server, which plays AWS on this machine. Without it on the PATH the test fails.
package moto

import (
	"bufio"
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Start starts a server on a free port and returns its URL. The shell ends it when its own input ends, so that it does not outlive this process, however
// that ends.
func Start(t testing.TB) string {
	t.Helper()
	server, err := exec.LookPath("moto_server")
	require.NoError(t, err, "this test needs moto's server on the PATH: pip install 'moto[server]==5.2.1'")
	cmd := exec.Command("sh", "-c", `"$0" -H 127.0.0.1 -p 0 & server=$!; cat >/dev/null; kill $server; wait $server`, server)
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())

	url, log, ended := make(chan string, 1), new(strings.Builder), make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(io.TeeReader(stderr, log)); lines.Scan(); {
			if _, u, ok := strings.Cut(lines.Text(), "Running on "); ok {
				select {
				case url <- strings.TrimSpace(u):
				default:
				}
			}
		}
	}()
	t.Cleanup(func() {
		require.NoError(t, stdin.Close())
		<-ended
		_ = cmd.Wait() // the status of a killed server
	})
	select {
	case u := <-url:
		return u
	case <-ended:
		require.Fail(t, "moto_server ended", log.String())
	case <-t.Context().Done():
	}
	return ""
}
