package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/postgres/embedded"
	"github.com/agentplatform/agentplatform/pkg/postgres/migrate"
	"github.com/agentplatform/agentplatform/schema"
)

// database is PostgreSQL, ours or a given one, with the schema and the roles.
type database struct {
	server    *embedded.Server // nil: DATABASE_URL names one that is not ours
	app       *postgres.DB
	reader    *postgres.DB
	ledger    *postgres.DB
	readerURL string
}

// openDatabase starts or reaches PostgreSQL and brings the schema up to date.
func openDatabase(ctx context.Context, c Config, s *secrets) (_ *database, err error) {
	d := &database{}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.close(ctx))
		}
	}()
	owner, at, reach := c.DatabaseURL, credentials(c.DatabaseURL), credentials(c.DatabaseURL)
	if c.DatabaseURL == "" {
		d.server, err = embedded.Start(ctx, embedded.Config{Dir: filepath.Join(c.Dir, "postgres"), Password: s.get("POSTGRES_PASSWORD"), Durable: true, Log: c.Log})
		if err != nil {
			return nil, err
		}
		owner = d.server.URL(embedded.Superuser, s.get("POSTGRES_PASSWORD"), embedded.Database)
		at = func(role, password string) string { return d.server.URL(role, password, embedded.Database) }
		reach = func(role, password string) string { return d.server.TCPURL(role, password, embedded.Database) }
	}
	if err := migrate.Up(ctx, owner, schema.SQL); err != nil {
		return nil, err
	}
	passwords := map[string]string{"agentplatform_app": s.get("POSTGRES_APP_PASSWORD"), "agentplatform_reader": s.get("POSTGRES_READER_PASSWORD"),
		"agentplatform_ledger": s.get("POSTGRES_LEDGER_PASSWORD")}
	if err := migrate.SetPasswords(ctx, owner, passwords); err != nil {
		return nil, err
	}
	if d.server != nil {
		if err := releaseTurns(ctx, owner); err != nil {
			return nil, err
		}
	}
	d.readerURL = reach("agentplatform_reader", passwords["agentplatform_reader"])
	open := func(role string, conns int) *postgres.DB {
		if err != nil {
			return nil
		}
		var db *postgres.DB
		db, err = postgres.Open(ctx, postgres.Config{URL: at(role, passwords[role]), MaxConns: conns})
		return db
	}
	d.app, d.reader, d.ledger = open("agentplatform_app", c.DatabaseConns), open("agentplatform_reader", 4), open("agentplatform_ledger", 4)
	return d, err
}

// credentials puts another role into a database's URL.
func credentials(base string) func(role, password string) string {
	return func(role, password string) string {
		u, err := url.Parse(base)
		if err != nil {
			return base
		}
		u.User = url.UserPassword(role, password)
		return u.String()
	}
}

// releaseTurns frees the leases of turns that were running when the platform last ended: in a database of its own nobody else can hold
// them. On another one they run out by themselves.
func releaseTurns(ctx context.Context, owner string) error {
	conn, err := pgx.Connect(ctx, owner)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	tag, err := conn.Exec(ctx, `update thread_turns set lease_until = clock_timestamp() where status in ('queued', 'running')`)
	if err != nil {
		return fmt.Errorf("taking up unfinished turns: %w", err)
	}
	if n := tag.RowsAffected(); n > 0 {
		slog.InfoContext(ctx, "taking up unfinished turns", "turns", n)
	}
	return nil
}

func (d *database) close(ctx context.Context) error {
	for _, db := range []*postgres.DB{d.app, d.reader, d.ledger} {
		if db != nil {
			db.Close()
		}
	}
	if d.server == nil {
		return nil
	}
	return d.server.Stop(ctx)
}
