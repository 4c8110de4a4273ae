// Package sandbox runs scripts on this machine, each in a process of its own that ends with it: this program once more, as Worker, in which a JavaScript
// interpreter written in Go runs the script.
//
// What keeps a script in, from the inside out:
//   - The interpreter has no way out: ECMAScript, a console, nothing else. It counts its memory, and stops at the limit.
//   - The worker is a process with an empty environment, no descriptors but its three pipes and figures of its own, an empty folder for a working directory, and limits of the
//     kernel's on memory, computing, files, and descriptors. It watches the clock, and ends at the limit whatever its interpreter does.
//   - On Linux it can gain no privileges, and a filter of system calls (seccomp) leaves it those that computing takes: it cannot open a file, make a
//     socket, start a program or a process, or signal another. This needs no privileges. If the platform runs as root, a worker gives that up too: it
//     has a user of its own, and an empty folder for a root.
//   - Where there is no filter, on macOS or in a container that forbids it, the interpreter is what keeps a script from files and network; memory,
//     computing and the rest are bounded as above, but for macOS not holding processes to limits of address space. The log says so once.
//
// The platform kills the worker's process group whatever happens. If the platform itself is killed the kernel kills the worker (Linux), and its standard
// input ends (anywhere).
package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	port "github.com/agentplatform/agentplatform/pkg/sandbox"
)

// Config says how scripts run.
type Config struct {
	Dir     string       // an empty folder, made if it is not there. Required
	Limits  port.Limits  // of a script; zero: port.Default
	Program string       // path of the workers' program, which calls Worker first in its main function; default this one
	Log     *slog.Logger // told what is weaker than it should be; default slog.Default()
}

// Sandbox is a port.Sandbox. It holds nothing between runs.
type Sandbox struct {
	config Config
	warned sync.Once
}

// ErrNotHooked is that of a program that cannot be its own workers.
var ErrNotHooked = errors.New("sandbox: this program does not call Worker first in its main function, so it cannot be a worker")

// Hooked reports whether this program can be its own workers.
func Hooked() bool { return hooked }

// Open makes a sandbox. This program's main function has called Worker, unless another is named; else ErrNotHooked.
func Open(c Config) (*Sandbox, error) {
	if !hooked && c.Program == "" {
		return nil, ErrNotHooked
	}
	if c.Limits == (port.Limits{}) {
		c.Limits = port.Default
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, err
	}
	if err := os.Chmod(c.Dir, 0o555); err != nil {
		return nil, err
	}
	if c.Program == "" {
		program, err := self()
		if err != nil {
			return nil, err
		}
		c.Program = program
	}
	closeOnExec()
	return &Sandbox{config: c}, nil
}

// Run implements port.Sandbox.
func (s *Sandbox) Run(ctx context.Context, script port.Script) (port.Result, error) {
	limits := s.config.Limits
	if err := limits.Check(script); err != nil {
		return port.Result{}, err
	}
	if err := ctx.Err(); err != nil {
		return port.Result{}, err
	}
	w, err := s.start(order{limits.Request(script), limits})
	if err != nil {
		return port.Result{}, fmt.Errorf("sandbox: %w", err)
	}
	stop := context.AfterFunc(ctx, w.kill)
	tooLong := time.AfterFunc(limits.Wall+grace, w.kill)
	a, err := w.wait(limits)
	stop()
	tooLong.Stop()
	if ctx.Err() != nil && err != nil {
		return port.Result{}, ctx.Err()
	}
	if err != nil {
		if limit, ok := w.limit(limits); ok {
			return limits.Result(port.Outcome{Status: limit}, "", time.Since(w.began)), nil
		}
		return port.Result{}, fmt.Errorf("sandbox: the worker ended without an answer: %s: %w: %s", w.cmd.ProcessState, err, w.stderr.text())
	}
	if a.Open != "" {
		s.warned.Do(func() { s.config.Log.Warn("scripts run without a filter of system calls", "why", a.Open) })
	}
	return limits.Result(a.Outcome, a.Stdout, a.Took), nil
}

// process is a worker, from outside.
type process struct {
	cmd    *exec.Cmd
	began  time.Time
	stdin  io.WriteCloser
	stdout io.ReadCloser
	stderr *last

	mu   sync.Mutex
	gone bool // it has been waited for: its number may be another's
}

// start starts a worker with its order. Until wait has returned the goroutine keeps its thread, whose end would be the worker's.
func (s *Sandbox) start(o order) (*process, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	w := &process{cmd: exec.Command(s.config.Program), began: time.Now(), stderr: &last{}}
	w.cmd.Args, w.cmd.Env, w.cmd.Dir, w.cmd.Stderr = []string{name}, []string{}, s.config.Dir, w.stderr
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(w.cmd.SysProcAttr)
	w.cmd.WaitDelay = grace
	if w.stdin, err = w.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if w.stdout, err = w.cmd.StdoutPipe(); err != nil {
		return nil, errors.Join(err, w.stdin.Close())
	}
	runtime.LockOSThread()
	if err := w.cmd.Start(); err != nil {
		runtime.UnlockOSThread()
		return nil, err
	}
	go func() { _, _ = w.stdin.Write(text) }() // who does not read it does not answer either
	return w, nil
}

// wait is the worker's answer, or why there is none. The process has ended.
func (w *process) wait(l port.Limits) (answer, error) {
	defer runtime.UnlockOSThread()
	most := int64(6*(l.Output*3+64<<10) + 64<<10) // JSON writes a byte in six at most
	text, err := io.ReadAll(io.LimitReader(w.stdout, most))
	w.kill() // it ends by itself, or has said too much
	w.mu.Lock()
	w.gone = true
	w.mu.Unlock()
	_ = w.cmd.Wait() // ProcessState tells
	if err != nil {
		return answer{}, err
	}
	var a answer
	return a, json.Unmarshal(text, &a)
}

// kill ends the worker's process group.
func (w *process) kill() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.gone {
		_ = syscall.Kill(-w.cmd.Process.Pid, syscall.SIGKILL) // one that has ended has ended
	}
}

// limit is the limit that a worker has met that could not say so.
func (w *process) limit(l port.Limits) (port.Status, bool) {
	state, stderr := w.cmd.ProcessState, w.stderr.text()
	status, _ := state.Sys().(syscall.WaitStatus)
	switch {
	case state.UserTime()+state.SystemTime() >= l.CPU || time.Since(w.began) >= l.Wall:
		return port.StatusTimeout, true
	case strings.Contains(stderr, "out of memory") || strings.Contains(stderr, "cannot allocate memory") || strings.Contains(stderr, "stack exceeds"):
		return port.StatusMemory, true
	case status.Signaled() && status.Signal() == syscall.SIGKILL: // none of ours: the kernel's, which is short of memory
		return port.StatusMemory, true
	}
	return "", false
}

// last keeps the beginning of what is written to it.
type last struct {
	mu   sync.Mutex
	kept []byte
}

func (l *last) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept = append(l.kept, p[:min(len(p), 4<<10-len(l.kept))]...)
	return len(p), nil
}

func (l *last) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.kept)
}
