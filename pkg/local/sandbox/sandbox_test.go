package sandbox

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	port "github.com/agentplatform/agentplatform/pkg/sandbox"
)

func TestMain(m *testing.M) {
	Worker()
	probe()
	os.Exit(m.Run())
}

func open(t testing.TB, l port.Limits) *Sandbox {
	t.Helper()
	s, err := Open(Config{Dir: filepath.Join(t.TempDir(), "empty"), Limits: l})
	require.NoError(t, err)
	return s
}

// forever are limits for what is to be ended otherwise.
func forever() port.Limits {
	l := port.Default
	l.CPU, l.Wall = time.Hour, 2*time.Hour
	return l
}

// begin starts a worker that computes for ever, and returns when its script runs.
func begin(t *testing.T, s *Sandbox) *process {
	t.Helper()
	l := s.config.Limits
	w, err := s.start(order{l.Request(port.Script{Language: port.JavaScript, Code: "for (;;);"}), l})
	require.NoError(t, err)
	t.Cleanup(func() { w.kill() })
	return w
}

func TestOpenWithoutTheHook(t *testing.T) {
	hooked = false
	defer func() { hooked = true }()
	_, err := Open(Config{Dir: t.TempDir()})
	require.ErrorContains(t, err, "does not call Worker", "else each run would be a whole program, which starts more of them")
}

// The end of standard input is the platform's: the worker goes, also from a loop.
func TestTheWorkerEndsWithItsInput(t *testing.T) {
	w := begin(t, open(t, forever()))
	require.NoError(t, w.stdin.Close())
	_, err := io.ReadAll(w.stdout) // comes to an end
	require.NoError(t, err)
	_, err = w.wait(forever())
	require.Error(t, err)
	require.Equal(t, 1, w.cmd.ProcessState.ExitCode())
}

// A worker that gives no answer is the sandbox's failure, not a script's outcome, unless a limit shows.
func TestAWorkerWithoutAnAnswer(t *testing.T) {
	s := open(t, forever())
	s.config.Program = "/bin/false"
	if _, err := os.Stat(s.config.Program); err != nil {
		s.config.Program = "/usr/bin/false"
	}
	_, err := s.Run(t.Context(), port.Script{Language: port.JavaScript, Code: "1"})
	require.ErrorContains(t, err, "the worker ended without an answer: exit status 1")

	w := begin(t, open(t, forever()))
	w.kill()
	_, err = w.wait(forever())
	require.Error(t, err)
	limit, ok := w.limit(forever())
	require.True(t, ok)
	require.Equal(t, port.StatusMemory, limit, "the kernel kills who has too much")

	_, err = (&Sandbox{config: Config{Dir: t.TempDir(), Limits: port.Default, Program: "/no/such/program"}}).Run(t.Context(), port.Script{Language: port.JavaScript, Code: "1"})
	require.Error(t, err)
}

// Scripts at the same time do not meet, and callers who go leave nothing behind.
func TestManyAtOnce(t *testing.T) {
	s := open(t, forever())
	var log bytes.Buffer
	s.config.Log = slog.New(slog.NewTextHandler(&log, nil))
	goroutines := runtime.NumGoroutine()
	var all sync.WaitGroup
	for range 12 {
		all.Go(func() {
			r, err := s.Run(t.Context(), port.Script{Language: port.JavaScript, Code: "globalThis.n = (globalThis.n ?? 0) + input; return n", Input: []byte("3")})
			if err == nil && string(r.Value) != "3" {
				err = io.ErrUnexpectedEOF
			}
			require.NoError(t, err)
		})
		all.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(20*time.Millisecond, cancel)
			_, err := s.Run(ctx, port.Script{Language: port.JavaScript, Code: "for (;;);"})
			require.ErrorIs(t, err, context.Canceled)
		})
	}
	all.Wait()
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= goroutines+1 }, time.Minute, time.Millisecond) // one asks
	require.Empty(t, children(t))
	if runtime.GOOS == "linux" {
		require.Empty(t, log.String(), "each had its filter")
	}
	left, err := os.ReadDir(s.config.Dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

// What a worker says on standard error is kept in part.
func TestLast(t *testing.T) {
	var l last
	for range 3 {
		n, err := l.Write([]byte(strings.Repeat("x", 3000)))
		require.NoError(t, err)
		require.Equal(t, 3000, n)
	}
	require.Len(t, l.text(), 4096)
}
