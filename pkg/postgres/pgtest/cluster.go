package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/postgres/embedded"
	"github.com/agentplatform/agentplatform/pkg/postgres/migrate"
	"github.com/agentplatform/agentplatform/schema"
)

func (c *cluster) started() (*embedded.Server, error) {
	c.once.Do(func() { c.err = c.start(context.Background()) }) // it outlives the test that came first
	return c.server, c.err
}

func (c *cluster) start(ctx context.Context) (err error) {
	sweep()
	if c.dir, err = os.MkdirTemp(root(), prefix); err != nil {
		return err
	}
	c.server, err = embedded.Start(ctx, embedded.Config{Dir: c.dir, Password: secret, Settings: map[string]string{
		"autovacuum":       "off",  // hundreds of short-lived databases
		"deadlock_timeout": "50ms", // how long a test of a deadlock takes
	}})
	if err != nil {
		return err
	}
	if c.admin, err = pgx.Connect(ctx, c.server.URL(embedded.Superuser, secret, embedded.Database)); err != nil {
		return err
	}
	if err := c.exec(ctx, "create database "+template); err != nil {
		return err
	}
	if err := migrate.Up(ctx, c.server.URL(embedded.Superuser, secret, template), schema.SQL); err != nil {
		return err
	}
	return migrate.SetPasswords(ctx, c.server.URL(embedded.Superuser, secret, embedded.Database), map[string]string{
		"agentplatform_owner": secret, "agentplatform_app": secret, "agentplatform_ledger": secret, "agentplatform_reader": secret,
	})
}

// exec runs an administrative statement.
func (c *cluster) exec(ctx context.Context, statement string) error {
	c.turn.Lock()
	defer c.turn.Unlock()
	_, err := c.admin.Exec(ctx, statement)
	return err
}

func (c *cluster) stop() error {
	if c.dir == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	var err error
	if c.admin != nil {
		err = c.admin.Close(ctx)
	}
	if c.server != nil {
		err = errors.Join(err, c.server.Stop(ctx))
	}
	if err != nil {
		return fmt.Errorf("the server does not stop, its folder is %s: %w", c.dir, err)
	}
	return os.RemoveAll(c.dir)
}

const (
	prefix = "agentplatform-pgtest-"
	memory = "/dev/shm"
	roomy  = 2 << 30     // bytes that must be free in memory for the databases of a few test processes
	young  = time.Minute // a folder of this age may belong to a process that has not locked it yet
)

// root is where test servers live: in memory where there is some. A database is 300 files, and ext4 takes a millisecond to make
// one while it remembers many that were just deleted, as it does under tests.
func root() string {
	var st syscall.Statfs_t
	if syscall.Statfs(memory, &st) == nil && uint64(st.Bavail)*uint64(st.Bsize) >= roomy { //nolint:unconvert // of other types on other systems
		return memory
	}
	return os.TempDir()
}

// sweep removes the folders of test processes that were killed: those whose lock nobody holds.
func sweep() {
	old, _ := filepath.Glob(filepath.Join(root(), prefix+"*"))
	for _, dir := range old {
		if st, err := os.Stat(dir); err != nil || time.Since(st.ModTime()) < young {
			continue
		}
		if lock, err := os.Open(filepath.Join(dir, "lock")); err == nil {
			if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
				_ = os.RemoveAll(dir)
			}
			lock.Close()
		}
	}
}
