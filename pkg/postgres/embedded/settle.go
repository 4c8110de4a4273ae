//go:build unix

package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// patience is how long a server that was left behind may take to shut down.
const patience = 15 * time.Second

// settle waits until no server uses the data directory. ours is the server of a process that was killed, 0 if there was none: it is
// told to end (on Linux the kernel has already done so). Somebody else's server is left alone, and named in the error.
func settle(ctx context.Context, data string, ours int) error {
	name := filepath.Join(data, "postmaster.pid")
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for told := false; ; {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil // no server, or it has just ended; another trouble is the server's to report
		}
		first, rest, _ := bytes.Cut(text, []byte("\n"))
		pid, err := strconv.Atoi(string(bytes.TrimSpace(first)))
		if err != nil || pid <= 0 || syscall.Kill(pid, 0) == syscall.ESRCH {
			return nil // stale, which PostgreSQL sees itself
		}
		if !serves(pid, data) {
			// The number is another program's by now, and PostgreSQL would believe in a running server. With the parent's
			// number it does not, and still looks whether old workers hold the shared memory that the file names.
			return rewrite(name, append(strconv.AppendInt(nil, int64(os.Getpid()), 10), append([]byte("\n"), rest...)...))
		}
		if pid == ours && !told {
			_ = syscall.Kill(pid, syscall.SIGINT)
			told = true
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return &Error{
				fmt.Sprintf("the database folder %s is in use by process %d", filepath.Dir(data), pid),
				fmt.Sprintf("stop it (kill -INT %d), or choose another folder", pid), nil,
			}
		}
	}
}

// rewrite replaces what is in a file that is there. The server may have ended since its file was read, and taken it along: a new one would be root's,
// and the next server could not read it.
func rewrite(name string, text []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_TRUNC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}
