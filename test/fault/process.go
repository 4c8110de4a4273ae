package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	startTime = 2 * time.Minute // for a start on a busy machine, the database made
	waitTime  = time.Minute     // for anything that a running platform does
)

// machine is a data directory and the platform that runs on it, one process after the other.
type machine struct {
	dir     string // removed with the machine
	program string // this one, built without tests
	ports   string

	up    up
	cmd   *exec.Cmd
	stdin io.Closer
	ended chan struct{} // closed at the process's end
}

// newMachine makes an empty data directory and takes ports that stay the same at each start, so that what a client has stays good.
func newMachine(program string) (*machine, error) {
	dir, err := os.MkdirTemp("", "agentplatform-fault-")
	if err != nil {
		return nil, err
	}
	var ports [2]string
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() // both are held until both are known
		_, ports[i], _ = net.SplitHostPort(l.Addr().String())
	}
	return &machine{dir: dir, program: program, ports: strings.Join(ports[:], " ")}, nil
}

func (m *machine) data() string { return filepath.Join(m.dir, "data") }

func (m *machine) log() string { return filepath.Join(m.dir, "platform.log") }

// errDied says that the platform ended before it was up.
var errDied = errors.New("the platform died before it was up")

// start starts the platform and waits until it is up.
func (m *machine) start(ctx context.Context) error {
	log, err := os.OpenFile(m.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(m.program, "-platform", m.data(), "-ports", m.ports)
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for who started it
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	stdout, out, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd.Stdout = out
	err = cmd.Start()
	out.Close()
	if err != nil {
		stdout.Close()
		return err
	}
	ended, line := make(chan struct{}), make(chan []byte, 1)
	m.cmd, m.stdin, m.ended = cmd, stdin, ended
	go func() {
		defer close(ended)
		_ = cmd.Wait() // its state tells
	}()
	go func() {
		defer stdout.Close()
		if text, err := bufio.NewReader(stdout).ReadBytes('\n'); err == nil {
			line <- text
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	select {
	case text := <-line:
		return json.Unmarshal(text, &m.up)
	case <-ended:
		if m.killed() {
			return errDied
		}
		return fmt.Errorf("the platform did not start: %s\n%s", cmd.ProcessState, m.said())
	case <-ctx.Done():
		m.kill()
		return fmt.Errorf("the platform did not start in time\n%s", m.said())
	}
}

// order has the platform die at a crash point, the n-th time that it is reached from now on.
func (m *machine) order(point string, times int) error {
	made := orderFile(m.data()) + ".new"
	if err := os.WriteFile(made, fmt.Appendf(nil, "%s %d\n", point, times), 0o600); err != nil {
		return err
	}
	return os.Rename(made, orderFile(m.data()))
}

// withdraw takes an order back that was not carried out.
func (m *machine) withdraw() { _ = os.Remove(orderFile(m.data())) }

// died waits until the platform has killed itself as it was ordered.
func (m *machine) died() error {
	select {
	case <-m.ended:
	case <-time.After(waitTime):
		return errors.New("the platform lives: it did not come to the crash point")
	}
	if !m.killed() {
		return fmt.Errorf("the platform ended otherwise: %s\n%s", m.cmd.ProcessState, m.said())
	}
	return nil
}

func (m *machine) killed() bool {
	s, ok := m.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && s.Signaled() && s.Signal() == syscall.SIGKILL
}

// kill is kill -9.
func (m *machine) kill() {
	if m.cmd == nil {
		return
	}
	_ = m.cmd.Process.Kill()
	<-m.ended
}

// stop tells the platform to stop, and does not wait.
func (m *machine) stop() { _ = m.cmd.Process.Signal(syscall.SIGTERM) }

// remove stops what runs and removes everything.
func (m *machine) remove() error {
	if m.cmd != nil {
		m.stop()
		select {
		case <-m.ended:
		case <-time.After(waitTime):
			m.kill()
		}
		m.stdin.Close()
	}
	var err error
	for range 200 { // the database of a killed platform may still write
		if err = os.RemoveAll(m.dir); err == nil {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return err
}

// said is the end of what the platforms have logged.
func (m *machine) said() string {
	raw, err := os.ReadFile(m.log())
	if err != nil {
		return err.Error()
	}
	return string(raw[max(0, len(raw)-4000):])
}
