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
	appURL    string // over TCP
	readerURL string
	owner     string                   // URL of who owns everything in it
	url       func(role string) string // of a role, with its password
}

// The roles that the platform connects as.
const (
	appRole    = "agentplatform_app"
	readerRole = "agentplatform_reader"
	ledgerRole = "agentplatform_ledger"
)

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
	passwords := map[string]string{appRole: s.get("POSTGRES_APP_PASSWORD"), readerRole: s.get("POSTGRES_READER_PASSWORD"), ledgerRole: s.get("POSTGRES_LEDGER_PASSWORD")}
	d.owner, d.url = owner, func(role string) string { return at(role, passwords[role]) }
	if err := migrate.SetPasswords(ctx, owner, passwords); err != nil {
		return nil, err
	}
	if d.server != nil {
		if err := release(ctx, owner); err != nil {
			return nil, err
		}
	}
	d.appURL = reach(appRole, passwords[appRole])
	d.readerURL = reach(readerRole, passwords[readerRole])
	open := func(role string, conns int) *postgres.DB {
		if err != nil {
			return nil
		}
		var db *postgres.DB
		db, err = postgres.Open(ctx, postgres.Config{URL: d.url(role), MaxConns: conns})
		return db
	}
	d.app, d.reader, d.ledger = open(appRole, c.DatabaseConns), open(readerRole, 4), open(ledgerRole, 4)
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

// release has the sweeps take up at once what was under way when the platform last ended: in a database of its own nobody else can be at it. On another
// one they wait until those who might be are late.
func release(ctx context.Context, owner string) error {
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
	for _, left := range []string{
		`update callbacks set next_at = clock_timestamp() where next_at > clock_timestamp()`,
		`update routine_steps set lease_until = clock_timestamp() where lease_until > clock_timestamp()`,
		`update integration_replies set next_at = clock_timestamp() where next_at > clock_timestamp()`,
		`update routine_runs set look_after = clock_timestamp() where look_after > clock_timestamp()`,
	} {
		if _, err := conn.Exec(ctx, left); err != nil {
			return fmt.Errorf("taking up what was under way: %w", err)
		}
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
