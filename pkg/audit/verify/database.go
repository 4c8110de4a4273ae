package verify

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

const (
	received     = 128 << 10 // bytes of a connection's buffer
	connectLimit = 15 * time.Second
	closeLimit   = 5 * time.Second
)

// database is the log's database as it was at one moment.
type database struct {
	config   *pgx.ConnConfig
	patience time.Duration
	snapshot string   // its name, for further connections
	leader   *session // holds the snapshot
}

// session is one connection, in a transaction that reads the snapshot. It does one thing at a time.
type session struct {
	conn     *pgx.Conn
	patience time.Duration
}

// openDatabase connects and takes the snapshot.
func openDatabase(ctx context.Context, url string, patience time.Duration) (*database, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, errors.New("the database's connection URL cannot be parsed") // pgx's error quotes it, with the password
	}
	config.ConnectTimeout = min(connectLimit, patience)
	config.RuntimeParams["application_name"] = "audit-verifier"
	config.RuntimeParams["timezone"] = "UTC"
	config.BuildFrontend = func(r io.Reader, w io.Writer) *pgproto3.Frontend {
		return pgproto3.NewFrontend(bufio.NewReaderSize(r, received), w) // which by itself asks the kernel for 8 KiB at a time
	}
	db := &database{config: config, patience: patience}
	if db.leader, err = db.session(ctx); err != nil {
		return nil, err
	}
	err = db.leader.row(ctx, `select pg_export_snapshot()`, nil, &db.snapshot)
	if err != nil {
		db.close()
		return nil, err
	}
	return db, nil
}

func (db *database) close() { db.leader.close() }

// session connects once more, to the same snapshot.
func (db *database) session(ctx context.Context) (*session, error) {
	s, err := db.fresh(ctx)
	if err != nil {
		return nil, err
	}
	// Rows are read in the order of an index, in small ranges: what helps one big query would only use memory here.
	begin := "begin isolation level repeatable read read only; set local jit = off; set local max_parallel_workers_per_gather = 0; set local enable_sort = off;"
	if db.snapshot != "" {
		begin += "set transaction snapshot '" + db.snapshot + "';"
	}
	if err := s.exec(ctx, begin); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// fresh connects outside of the snapshot: what it reads is what is there now.
func (db *database) fresh(ctx context.Context) (*session, error) {
	conn, err := pgx.ConnectConfig(ctx, db.config)
	if err != nil {
		return nil, fmt.Errorf("the database: %w", withoutPassword(err))
	}
	return &session{conn, db.patience}, nil
}

// withoutPassword is a connection error that names host and user only, as pgx's does.
func withoutPassword(err error) error {
	var parse *pgconn.ParseConfigError
	if errors.As(err, &parse) {
		return errors.New("the connection URL cannot be parsed")
	}
	return err
}

func (s *session) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	_ = s.conn.Close(ctx) // nothing was written
}

// bounded runs one question to the database, which ends when it is silent for too long.
func (s *session) bounded(ctx context.Context, ask func(ctx context.Context, w *watch) error) error {
	ctx, w := watched(ctx, "the database", s.patience)
	defer w.end()
	if err := cause(ctx, ask(ctx, w)); err != nil {
		return fmt.Errorf("the database: %w", err)
	}
	return nil
}

func (s *session) exec(ctx context.Context, sql string) error {
	return s.bounded(ctx, func(ctx context.Context, _ *watch) error {
		_, err := s.conn.PgConn().Exec(ctx, sql).ReadAll()
		return err
	})
}

// row asks for one row.
func (s *session) row(ctx context.Context, sql string, args []any, to ...any) error {
	return s.bounded(ctx, func(ctx context.Context, _ *watch) error { return s.conn.QueryRow(ctx, sql, args...).Scan(to...) })
}

// rows asks for rows; scan is called for each.
func (s *session) rows(ctx context.Context, sql string, args []any, scan func(pgx.Rows) error) error {
	return s.bounded(ctx, func(ctx context.Context, w *watch) error {
		rows, err := s.conn.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			w.wake()
			if err := scan(rows); err != nil {
				return err
			}
		}
		return rows.Err()
	})
}

// copyOut streams the rows of a query in PostgreSQL's binary form.
func (s *session) copyOut(ctx context.Context, query string, to io.Writer) error {
	return s.bounded(ctx, func(ctx context.Context, w *watch) error {
		_, err := s.conn.PgConn().CopyTo(ctx, &wakeful{to, w}, "copy ("+query+") to stdout (format binary)")
		return err
	})
}

// wakeful notes that something came.
type wakeful struct {
	io.Writer
	w *watch
}

func (l *wakeful) Write(p []byte) (int, error) {
	l.w.came(len(p))
	return l.Writer.Write(p)
}
