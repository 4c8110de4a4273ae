// Package migrate brings a database to the schema of the migrations it is given, and gives its roles their credentials.
//
// What holds: migrations only go forward, each in its own transaction, each once. Several processes may call Up at once: they
// take turns by an advisory lock of the database, which ends with the connection of whoever held it. A process that dies in
// between leaves whole migrations, and the next one goes on from there. Functions never import this package.
package migrate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
)

// Up applies what is missing. ownerURL connects as a superuser (local mode) or as a role that may create roles; the files hand
// the objects to agentplatform_owner themselves. files has the migrations, named <number>_<name>.sql, at its root or in a folder sql.
func Up(ctx context.Context, ownerURL string, files fs.FS) error {
	if sub, err := fs.Sub(files, "sql"); err == nil {
		if _, err := fs.Stat(files, "sql"); err == nil {
			files = sub
		}
	}
	config, err := pgx.ParseConfig(ownerURL)
	if err != nil {
		return errors.New("migrate: the connection URL cannot be parsed")
	}
	db := stdlib.OpenDB(*config)
	defer db.Close()
	p, err := goose.NewProvider(goose.DialectPostgres, db, files,
		goose.WithSessionLocker(lock{}), goose.WithDisableGlobalRegistry(true), goose.WithSlog(slog.New(slog.DiscardHandler)))
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

// SetPassword lets a role that the migrations made log in with this password. superURL connects as a superuser.
func SetPassword(ctx context.Context, superURL, role, password string) error {
	return SetPasswords(ctx, superURL, map[string]string{role: password})
}

// SetPasswords is SetPassword for several roles, over one connection.
func SetPasswords(ctx context.Context, superURL string, passwords map[string]string) error {
	conn, err := pgx.Connect(ctx, superURL)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for role, password := range passwords {
		if password == "" {
			return fmt.Errorf("migrate: role %s needs a password", role)
		}
		var statement string // alter role takes no arguments, so the server quotes them
		if err := conn.QueryRow(ctx, `select format('alter role %I login password %L', $1::text, $2::text)`, role, password).Scan(&statement); err != nil {
			return fmt.Errorf("migrate: role %s: %w", role, err)
		}
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("migrate: role %s: %w", role, err)
		}
	}
	return nil
}

// lockID is the advisory lock of migrations: the bytes "agentpla" of the product's name.
const lockID int64 = 0x6167656e74706c61

// lock polls instead of waiting in the database: a waiting statement holds a snapshot, which blocks concurrent index builds.
// goose's own lock polls once a second.
type lock struct{}

func (lock) SessionLock(ctx context.Context, conn *sql.Conn) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		var taken bool
		if err := conn.QueryRowContext(ctx, "select pg_try_advisory_lock($1)", lockID).Scan(&taken); err != nil || taken {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("waiting for another process that migrates: %w", ctx.Err())
		}
	}
}

func (lock) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, "select pg_advisory_unlock($1)", lockID)
	return err
}
