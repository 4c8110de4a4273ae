//go:build unix

package embedded

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	logName    = "postgres.log"
	logLimit   = 16 << 20 // bytes; a longer log is begun anew at the next start
	socketRoom = 80       // bytes of a socket's folder; a socket's whole name may have 103 (macOS) or 107 (Linux)
	startLimit = 5 * time.Minute
)

// process is the running server.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

// serve starts the server until it answers. What may pass by waiting is tried again: a port that somebody else took in between,
// and shared memory that the workers of a killed server still hold.
func (s *Server) serve(ctx context.Context, data string) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	deadline := time.Now().Add(patience)
	for {
		problem, err := s.attempt(ctx, data)
		if err == nil && problem == "" {
			return nil
		}
		busyPort := strings.Contains(problem, "could not create any TCP/IP sockets")
		again := busyPort && s.config.Port == 0 || strings.Contains(problem, "pre-existing shared memory block")
		switch {
		case again && time.Now().Before(deadline) && ctx.Err() == nil:
			time.Sleep(10 * pause)
		case err != nil:
			return err
		case busyPort:
			return &Error{fmt.Sprintf("port %d of 127.0.0.1, for PostgreSQL, is in use", s.config.Port), "choose another port", nil}
		default:
			return damaged(data, problem, errors.New(problem))
		}
	}
}

// attempt starts the server once. A server that ended by itself gives the problem that it logged.
func (s *Server) attempt(ctx context.Context, data string) (problem string, err error) {
	log, from, err := openLog(filepath.Join(s.config.Dir, logName))
	if err != nil {
		return "", &Error{fmt.Sprintf("the log of PostgreSQL cannot be written: %v", err), "choose another folder", err}
	}
	defer log.Close()
	c := newCommand()
	defer c.close()
	c.as(data)
	dataPath, err := c.path(data)
	if err != nil {
		return "", damaged(data, err.Error(), err)
	}
	socketPath, err := s.makeSocket(c)
	if err != nil {
		return "", fmt.Errorf("embedded: a folder for the socket: %w", err)
	}
	if s.port = s.config.Port; s.port == 0 {
		if s.port, err = freePort(); err != nil {
			return "", fmt.Errorf("embedded: no free port: %w", err)
		}
	}
	args := append([]string{"-D", dataPath}, settings(s.config, s.port, socketPath)...)
	cmd := c.build(context.WithoutCancel(ctx), filepath.Join(s.bin, "postgres"), args...)
	cmd.Stderr, cmd.Stdout = log, log
	if s.proc, err = launch(cmd); err != nil {
		return "", &Error{fmt.Sprintf("PostgreSQL cannot be started: %v", err), "check the installation in " + s.bin, err}
	}
	s.lock.current.Postmaster = cmd.Process.Pid
	if err := s.lock.write(s.lock.current); err != nil {
		return "", errors.Join(err, s.proc.stop(ctx))
	}
	if err := s.ready(ctx); err != nil {
		select {
		case <-s.proc.done:
			return failure(log, from, dataPath, data), nil
		default:
			return "", errors.Join(err, s.proc.stop(ctx))
		}
	}
	return "", nil
}

// launch starts cmd on a thread of its own that lives as long as it: to Linux, a child's parent is the thread that forked it.
func launch(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // for ever: the thread ends with this goroutine
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // its log says how it ended
			close(p.done)
		}
	}()
	return p, <-started
}

func (p *process) stop(ctx context.Context) error {
	// Fast shutdown; then immediate, which leaves the next start a recovery; then what nobody survives.
	for _, step := range []struct {
		signal syscall.Signal
		wait   context.Context
	}{{syscall.SIGINT, ctx}, {syscall.SIGQUIT, nil}, {syscall.SIGKILL, nil}} {
		_ = p.cmd.Process.Signal(step.signal)
		wait, cancel := step.wait, context.CancelFunc(func() {})
		if wait == nil {
			wait, cancel = context.WithTimeout(context.Background(), 5*time.Second)
		}
		select {
		case <-p.done:
			cancel()
			return nil
		case <-wait.Done():
			cancel()
		}
	}
	return fmt.Errorf("embedded: process %d does not end", p.cmd.Process.Pid)
}

// ready waits until the server lets the superuser in.
func (s *Server) ready(ctx context.Context) error {
	config, err := pgx.ParseConfig(s.URL(Superuser, s.config.Password, Database))
	if err != nil {
		return errors.New("embedded: the socket's folder cannot be part of a URL: " + s.socket)
	}
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		conn, err := pgx.ConnectConfig(ctx, config)
		if err == nil {
			return conn.Close(ctx)
		}
		var pg *pgconn.PgError
		if errors.As(err, &pg) && pg.Code == "28P01" {
			return &Error{
				fmt.Sprintf("the database in %s was made with another superuser password", s.config.Dir),
				"give that password, or remove the folder to start empty", pg,
			}
		}
		if pg != nil && (pg.Code == "3D000" || strings.HasPrefix(pg.Code, "58") || strings.HasPrefix(pg.Code, "XX")) { // no database, files missing, corruption
			return damaged(filepath.Join(s.config.Dir, "data"), pg.Message, pg)
		}
		select {
		case <-tick.C:
		case <-s.proc.done:
			return errors.New("embedded: the server has ended")
		case <-ctx.Done():
			return fmt.Errorf("embedded: PostgreSQL does not answer: %w (last: %w)", ctx.Err(), err)
		}
	}
}

// makeSocket chooses the socket's folder and gives the server's way to it.
func (s *Server) makeSocket(c *command) (string, error) {
	s.socket = s.config.Dir
	if len(s.socket) <= socketRoom && !strings.ContainsAny(s.socket, `"`) {
		if !c.drop {
			return s.socket, nil
		}
		s.socket = filepath.Join(s.config.Dir, "data") // the server's own; Dir is root's
		return c.path(s.socket)
	}
	if s.lock.current.Socket == "" { // a second attempt has it
		made, err := os.MkdirTemp("", socketPrefix)
		if err != nil || len(made) > socketRoom {
			_ = os.Remove(made)
			if made, err = os.MkdirTemp("/tmp", socketPrefix); err != nil {
				return "", err
			}
		}
		s.lock.current.Socket = made
		if err := errors.Join(s.lock.write(s.lock.current), c.own(made)); err != nil {
			return "", err
		}
	}
	s.socket = s.lock.current.Socket
	return c.path(s.socket)
}

func freePort() (int, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// openLog opens the log for appending, and tells where this start's part begins.
func openLog(name string) (*os.File, int64, error) {
	flags := os.O_RDWR | os.O_CREATE | os.O_APPEND
	if st, err := os.Stat(name); err == nil && st.Size() > logLimit {
		flags |= os.O_TRUNC
	}
	f, err := os.OpenFile(name, flags, 0o600)
	if err != nil {
		return nil, 0, err
	}
	st, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, st.Size(), nil
}

// failure is why the server ended, in its own words.
func failure(log *os.File, from int64, dataPath, data string) string {
	st, err := log.Stat()
	if err != nil || st.Size() <= from {
		return "it ended without a word"
	}
	text := make([]byte, min(st.Size()-from, 1<<20))
	n, _ := log.ReadAt(text, from)
	var lines []string
	for line := range strings.Lines(string(text[:n])) {
		if !strings.Contains(line, "FATAL:  the database system is") { // what it told this process's attempts to connect
			lines = append(lines, line)
		}
	}
	line := strings.ReplaceAll(lastLine(strings.Join(lines, "")), dataPath, data)
	for _, mark := range []string{"FATAL:", "PANIC:"} {
		if _, after, ok := strings.Cut(line, mark); ok {
			return strings.TrimSpace(after)
		}
	}
	return line
}
