package migrate

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// transaction runs run in a transaction whose statements give up in time.
func (c Config) transaction(ctx context.Context, conn *pgx.Conn, run func(ctx context.Context, tx pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		limits := fmt.Sprintf("set local lock_timeout = %d; set local statement_timeout = %d", c.Lock.Milliseconds(), c.Statement.Milliseconds())
		if _, err := tx.Exec(ctx, limits); err != nil {
			return err
		}
		return run(ctx, tx)
	})
}

// apply applies a file: its statements travel in one message, so that the server finds their ends, and an error says where it was met in the file.
func (c Config) apply(ctx context.Context, conn *pgx.Conn, m migration) error {
	return c.transaction(ctx, conn, func(ctx context.Context, tx pgx.Tx) error {
		results := tx.Conn().PgConn().Exec(ctx, m.text)
		done := 0
		for results.NextResult() {
			if _, err := results.ResultReader().Close(); err == nil {
				done++
			}
		}
		if err := results.Close(); err != nil {
			return &statementError{done, err}
		}
		_, err := tx.Exec(ctx, `reset role`) // to the one that owns the table
		if err == nil {
			_, err = tx.Exec(ctx, `insert into public.schema_migrations (version, name, sha256) values ($1, $2, $3)`, m.version, m.name, m.sha256)
		}
		return err
	})
}

// statementError is the error of a file's statement after so many that were done.
type statementError struct {
	done int
	error
}

func (e *statementError) Unwrap() error { return e.error }
