//go:build unix

package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// oldest is the first major version that has what the schema needs.
const oldest = 15

// dataVersion is the major version that made the data directory, 0 when there is none yet.
func dataVersion(dir, data string) (int, error) {
	text, err := os.ReadFile(filepath.Join(data, "PG_VERSION"))
	if err == nil {
		if major, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && major > 0 {
			return major, nil
		}
		return 0, damaged(data, "PG_VERSION does not hold a version", nil)
	}
	if _, err := os.Lstat(data); err == nil {
		return 0, damaged(data, "it has no PG_VERSION", nil)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, &Error{fmt.Sprintf("the database folder %s cannot be read: %v", dir, err), "choose another folder", err}
	}
	for _, e := range entries {
		switch e.Name() {
		case "lock", logName, making, passwordFile, "lost+found":
		default:
			return 0, &Error{
				fmt.Sprintf("the database folder %s is not empty and holds no database, but %q", dir, e.Name()),
				"choose another folder, or empty this one", nil,
			}
		}
	}
	return 0, nil
}

func damaged(data, detail string, cause error) *Error {
	return &Error{
		fmt.Sprintf("PostgreSQL cannot use the data directory %s: %s", data, detail),
		"see " + filepath.Join(filepath.Dir(data), logName) + "; if it is damaged, restore it from a backup, or remove " +
			filepath.Dir(data) + " to start empty", cause,
	}
}

const (
	making       = "data.making" // what becomes data; whatever is there at a start is a first start that was killed
	passwordFile = "password.making"
)

// initialize makes the data directory beside its place and moves it there when it is whole (Durable: and on the disk).
func initialize(ctx context.Context, config Config, bin, data string) error {
	fail := func(err error) error {
		return &Error{
			fmt.Sprintf("the database in %s cannot be made: %v", config.Dir, err),
			"check free space and permissions of that folder", err,
		}
	}
	made, secret := filepath.Join(config.Dir, making), filepath.Join(config.Dir, passwordFile)
	if err := removeLeft(ctx, made); err != nil {
		return fail(err)
	}
	defer os.Remove(secret)
	if err := errors.Join(os.Mkdir(made, 0o700), os.WriteFile(secret, []byte(config.Password+"\n"), 0o600)); err != nil {
		return fail(err)
	}
	c := newCommand()
	defer c.close()
	if err := errors.Join(c.own(made), c.own(secret)); err != nil {
		return fail(err)
	}
	madePath, err := c.path(made)
	if err != nil {
		return fail(err)
	}
	secretPath, err := c.path(secret)
	if err != nil {
		return fail(err)
	}
	// Byte order for sorting: the same on every machine, and an index of the operating system's locale breaks with its updates.
	out, err := output(c.build(ctx, filepath.Join(bin, "initdb"), "-D", madePath, "-U", Superuser, "--pwfile="+secretPath,
		"-A", "scram-sha-256", "-E", "UTF8", "--locale-provider=libc", "--locale=C", "--no-sync", "--no-instructions"))
	if ctx.Err() != nil {
		return fail(ctx.Err())
	}
	if interrupted(err) {
		return fail(context.Canceled)
	}
	if err != nil {
		return fail(fmt.Errorf("initdb: %w: %s", err, lastLine(out)))
	}
	if config.Durable {
		if err := syncTree(made); err != nil {
			return fail(err)
		}
	}
	if err := os.Rename(made, data); err != nil {
		return fail(err)
	}
	if config.Durable {
		if err := syncFile(config.Dir); err != nil {
			return fail(err)
		}
	}
	return nil
}

// removeLeft removes what a killed first start left. Its initdb died with it, but the server that initdb ran may write for a moment longer,
// and a folder that is written to cannot be removed: so again, until it can.
func removeLeft(ctx context.Context, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		err := os.RemoveAll(dir)
		if !errors.Is(err, syscall.ENOTEMPTY) {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
		}
	}
}

// syncTree writes a folder out to the disk, several files at once, since each waits for the disk (initdb's own does one by one).
func syncTree(root string) error {
	var group errgroup.Group
	group.SetLimit(16)
	err := filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
		if err == nil && (e.IsDir() || e.Type().IsRegular()) {
			group.Go(func() error { return syncFile(name) })
		}
		return err
	})
	return errors.Join(err, group.Wait())
}

func syncFile(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i := len(lines) - 1; i >= 0; i-- { // initdb's own last line says that it removed what it made
		if strings.Contains(lines[i], "rror:") || strings.Contains(lines[i], "FATAL:") || strings.Contains(lines[i], "PANIC:") {
			return strings.TrimSpace(lines[i])
		}
	}
	return strings.TrimSpace(lines[len(lines)-1])
}
