//go:build unix

package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// nobody is the user that the server runs as when root starts it.
const nobody = 65534

// command is a program of PostgreSQL in the making: started as an unprivileged user, with descriptors of the folders it needs.
type command struct {
	drop  bool // started by root: run as the user below
	user  syscall.Credential
	files []*os.File // the child's descriptors from 3 on
}

func newCommand() *command {
	return &command{drop: os.Geteuid() == 0, user: syscall.Credential{Uid: nobody, Gid: nobody}}
}

// as has the program run as the owner of an existing data directory, so that root may once serve what a user made.
func (c *command) as(data string) {
	if st, err := os.Stat(data); err == nil {
		if owner, ok := st.Sys().(*syscall.Stat_t); ok && owner.Uid != 0 {
			c.user = syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}
		}
	}
}

// path is how the program reaches a folder or file. An unprivileged one may not be able to go there (a parent is 0700), but it can
// always reach what is handed to it open: PostgreSQL takes /proc/self/fd/3 for a data directory like any other.
func (c *command) path(name string) (string, error) {
	if !c.drop || runtime.GOOS != "linux" {
		return name, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	c.files = append(c.files, f)
	return fmt.Sprintf("/proc/self/fd/%d", 2+len(c.files)), nil
}

// own makes name the unprivileged user's.
func (c *command) own(name string) error {
	if !c.drop {
		return nil
	}
	return os.Chown(name, int(c.user.Uid), int(c.user.Gid))
}

func (c *command) close() {
	for _, f := range c.files {
		f.Close()
	}
}

func (c *command) build(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = "/" // the working directory may be one that the user cannot go to
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "TZ=UTC"}
	cmd.ExtraFiles = c.files
	// Its own process group: Ctrl-C in a terminal must reach this process only, which then stops the server last.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
	if c.drop {
		cmd.SysProcAttr.Credential = &c.user
	}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// interrupted reports whether Ctrl-C ended the program: it came before the program had a process group of its own.
func interrupted(err error) bool {
	exit := (*exec.ExitError)(nil)
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGINT
}

// output runs the program to its end. The thread that starts it must live until then, because its death is the parent's to Linux.
func output(cmd *exec.Cmd) (string, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	out, err := cmd.CombinedOutput()
	return string(out), err
}
