//go:build unix

package embedded

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// lock is this process's claim on Dir. The kernel frees it with the process, so there is no stale one.
type lock struct {
	file     *os.File
	previous holder // who held it last; zero when it ended in order
	current  holder
}

// holder is what the lock file says, for the error of a second process and for tidying up after a killed one.
type holder struct {
	Process    int    `json:"process"`              // that runs the server
	Postmaster int    `json:"postmaster,omitempty"` // the server's own
	Socket     string `json:"socket,omitempty"`     // a folder outside Dir, to be removed
}

func acquire(dir string) (*lock, error) {
	name := filepath.Join(dir, "lock")
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, &Error{fmt.Sprintf("the database folder %s cannot be used: %v", dir, err), "choose another folder", err}
	}
	l := &lock{file: f}
	text, _ := io.ReadAll(f)
	_ = json.Unmarshal(text, &l.previous) // one that was killed while it wrote is as good as none
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		who := "another process"
		if l.previous.Process != 0 {
			who = fmt.Sprintf("process %d", l.previous.Process)
		}
		return nil, &Error{fmt.Sprintf("the database folder %s is in use by %s", dir, who), "stop it, or choose another folder", err}
	}
	return l, l.write(holder{Process: os.Getpid()})
}

func (l *lock) write(h holder) error {
	l.current = h
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	_, err = l.file.WriteAt(text, 0)
	return err
}

// socketPrefix is what a folder's name must begin with before it is removed because a file says so.
const socketPrefix = "agentplatform-pg-"

// removeSocket removes the socket folders outside Dir: this process's and that of a killed one before it.
func (l *lock) removeSocket() {
	for _, dir := range []string{l.previous.Socket, l.current.Socket} {
		if strings.HasPrefix(filepath.Base(dir), socketPrefix) {
			_ = os.RemoveAll(dir)
		}
	}
}

func (l *lock) release() error {
	_ = l.file.Truncate(0)
	return l.file.Close()
}
