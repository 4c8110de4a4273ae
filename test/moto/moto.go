// Package moto gives tests moto's server, which plays AWS on this machine. Without it on the PATH the test fails.
package moto

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Start starts a server on a free port and returns its URL; it ends with the test.
func Start(t testing.TB) string {
	t.Helper()
	server, err := Run(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	return server.URL
}

// Server is moto's.
type Server struct {
	URL string

	stop  func() error
	ended chan struct{}

	mu  sync.Mutex
	log []string // its last lines
}

// kept is how many lines of its log a server keeps: a traceback has about 60.
const kept = 200

// Run starts a server on a free port, with settings (NAME=value) beside this process's environment; ctx bounds the start. The shell ends the server
// when its own input ends, so that it does not outlive this process, however that ends.
func Run(ctx context.Context, settings ...string) (*Server, error) {
	program, err := exec.LookPath("moto_server")
	if err != nil {
		return nil, errors.New("moto's server is not on the PATH: pip install 'moto[server]==5.2.1'")
	}
	cmd := exec.Command("sh", "-c", `"$0" -H 127.0.0.1 -p 0 & server=$!; cat >/dev/null; kill $server; wait $server`, program)
	cmd.Env = append(cmd.Environ(), settings...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s, url := &Server{ended: make(chan struct{})}, make(chan string, 1)
	s.stop = sync.OnceValue(func() error {
		err := stdin.Close()
		<-s.ended
		_ = cmd.Wait() // the status of a killed server
		return err
	})
	go func() {
		defer close(s.ended)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			s.keep(lines.Text())
			if _, u, ok := strings.Cut(lines.Text(), "Running on "); ok {
				select {
				case url <- strings.TrimSpace(u):
				default:
				}
			}
		}
	}()
	select {
	case s.URL = <-url:
		return s, nil
	case <-s.ended:
		return nil, errors.Join(fmt.Errorf("moto_server ended:\n%s", s.Log()), s.Stop())
	case <-ctx.Done():
		return nil, errors.Join(ctx.Err(), s.Stop())
	}
}

func (s *Server) keep(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.log = append(s.log, line); len(s.log) > kept {
		s.log = s.log[1:]
	}
}

// Log is the end of what the server has said, with the traceback of an operation that failed inside of it.
func (s *Server) Log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.log, "\n")
}

// Stop ends the server and waits for its end.
func (s *Server) Stop() error { return s.stop() }
