// Package pgtest gives each test a database of its own on a real PostgreSQL server, with the schema's migrations and roles.
//
// A package's TestMain calls Main. The first New then starts one server for the test process and migrates one template
// database; each New copies that, which takes some 15 ms. Tests connect as the application's role, which row-level security binds,
// as functions do. Server and folder are gone at the end, also of a failed or killed run (the next run removes what a kill left).
//
// A machine without PostgreSQL fails the tests: there is no skipping.
package pgtest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/postgres/embedded"
)

// DB is one test's database.
type DB struct {
	Name string
	// App is connected as agentplatform_app, as functions are.
	App *postgres.DB
	// URLs of the roles, over the Unix socket.
	AppURL, OwnerURL, LedgerURL, ReaderURL, SuperURL string
	// AppTCPURL is AppURL over TCP, for tests that put a proxy in between.
	AppTCPURL string
}

// Main runs a package's tests and ends the process: func TestMain(m *testing.M) { pgtest.Main(m) }
func Main(m *testing.M) {
	main.Store(true)
	code := m.Run()
	if err := shared.stop(); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// The one state that is shared: a server for all tests of the process, and whether somebody will stop it.
var (
	main   atomic.Bool
	shared cluster
	serial atomic.Int64
)

// New is a fresh database, dropped when t ends.
func New(t testing.TB) *DB {
	t.Helper()
	if !main.Load() {
		t.Fatal("pgtest: the package needs func TestMain(m *testing.M) { pgtest.Main(m) }")
	}
	if _, err := shared.started(); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return shared.copyOf(t, template)
}

// Clone is a copy of db as it is now, dropped when t ends. It ends every connection to db: a database in use cannot be copied.
func (db *DB) Clone(t testing.TB) *DB {
	t.Helper()
	// A backend that is told to end may take a moment to be gone.
	if err := shared.exec(t.Context(), "select pg_terminate_backend(pid, 60000) from pg_stat_activity where datname = '"+db.Name+"'"); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return shared.copyOf(t, db.Name)
}

func (c *cluster) copyOf(t testing.TB, source string) *DB {
	t.Helper()
	name := fmt.Sprintf("test_%d", serial.Add(1))
	// Copying files costs two checkpoints, which cost nothing without fsync, and then half as much as copying through the log.
	if err := c.exec(t.Context(), "create database "+name+" template "+source+" strategy file_copy"); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() {
		if err := c.exec(context.Background(), "drop database "+name+" with (force)"); err != nil {
			t.Errorf("pgtest: %v", err)
		}
	})
	url := func(role string) string { return c.server.URL(role, secret, name) }
	db := &DB{
		Name:      name,
		AppURL:    url("agentplatform_app"),
		OwnerURL:  url("agentplatform_owner"),
		LedgerURL: url("agentplatform_ledger"),
		ReaderURL: url("agentplatform_reader"),
		SuperURL:  url(embedded.Superuser),
		AppTCPURL: c.server.TCPURL("agentplatform_app", secret, name),
	}
	db.App = db.Open(t, db.AppURL)
	return db
}

// Open is a pool for one of the URLs, closed when t ends.
func (db *DB) Open(t testing.TB, url string) *postgres.DB {
	t.Helper()
	pool, err := postgres.Open(t.Context(), postgres.Config{URL: url, MaxConns: 8, Name: t.Name()})
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// Connect is one connection for one of the URLs, closed when t ends.
func (db *DB) Connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// Superuser is a connection that no policy binds, to look at and to arrange what the application cannot.
func (db *DB) Superuser(t testing.TB) *pgx.Conn {
	t.Helper()
	return db.Connect(t, db.SuperURL)
}

// Tenant makes a tenant and gives its id.
func (db *DB) Tenant(t testing.TB, slug string) string {
	t.Helper()
	id := ident.New()
	err := db.App.InTenant(t.Context(), id, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `insert into tenants (id, slug, name) values ($1, $2, $2)`, id, slug)
		return err
	})
	if err != nil {
		t.Fatalf("pgtest: tenant %s: %v", slug, err)
	}
	return id
}

const (
	secret    = "pgtest" // of every role; the server is reachable from this machine only, and holds nothing
	template  = "pgtest_template"
	stopLimit = 30 * time.Second
)

// cluster is the shared server, started when it is first needed.
type cluster struct {
	once   sync.Once
	dir    string
	server *embedded.Server
	admin  *pgx.Conn
	turn   sync.Mutex // of admin, which does one thing at a time
	err    error
}

// Folder is an empty folder in memory, where there is some, removed when t ends (or with the server, after a kill): for other things
// that tests make thousands of files in.
func Folder(t testing.TB) string {
	t.Helper()
	if _, err := shared.started(); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	dir, err := os.MkdirTemp(shared.dir, "folder-")
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("pgtest: %v", err)
		}
	})
	return dir
}
