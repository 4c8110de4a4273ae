//go:build long && linux

package main

import (
	"bufio"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
)

// The image for this machine, unpacked: its program serves with that folder as the root of the file system, without an environment but its
// settings, as the image's user. Only root can give it the root and the user; others give it the rest.
func TestTheImageRuns(t *testing.T) {
	program, err := build(t.Context(), runtime.GOARCH)
	require.NoError(t, err)
	image, err := assemble(program, runtime.GOARCH)
	require.NoError(t, err)
	root := t.TempDir()
	files := mutate.Extract(image)
	defer files.Close()
	unpack(t, files, root)
	require.NoError(t, os.Chmod(root, 0o755))

	path, attr := filepath.Join(root, entrypoint), &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Getuid() == 0 {
		path, attr.Chroot, attr.Credential = entrypoint, root, &syscall.Credential{Uid: 65532, Gid: 65532, NoSetGroups: false}
	}
	cmd := &exec.Cmd{Path: path, Args: []string{entrypoint}, Dir: "/", SysProcAttr: attr,
		Env: []string{"PORT=0", "APPSYNC_URL=none", "FUNCTION_PREFIX=none", "AWS_REGION=us-east-1", "DATABASE_URL=" + pgtest.New(t).AppTCPURL}}
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = cmd.Stdout
	runtime.LockOSThread() // the program dies with the thread that forked it
	defer runtime.UnlockOSThread()
	require.NoError(t, cmd.Start())
	defer time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() }).Stop()
	lines := bufio.NewScanner(out)
	var entry struct{ Message, Address string }
	var said strings.Builder
	for entry.Message != "serving" && lines.Scan() {
		said.WriteString(lines.Text() + "\n")
		_ = json.Unmarshal(lines.Bytes(), &entry)
	}
	require.Equal(t, "serving", entry.Message, said.String())
	_, port, err := net.SplitHostPort(entry.Address)
	require.NoError(t, err)
	response, err := http.Get("http://127.0.0.1:" + port + "/ping")
	require.NoError(t, err)
	defer response.Body.Close()
	var ping struct{ Status string }
	require.NoError(t, json.NewDecoder(response.Body).Decode(&ping))
	require.Equal(t, "Healthy", ping.Status)

	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	for lines.Scan() { // until its end
	}
	require.NoError(t, cmd.Wait())
}
