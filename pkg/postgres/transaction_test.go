package postgres_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// counter writes a row of the tenant; tests look whether it is there afterwards.
func counter(ctx context.Context, tx pgx.Tx, tenant, prefix string) error {
	_, err := tx.Exec(ctx, `insert into thread_counters (tenant_id, prefix, last_number) values ($1, $2, 1)
		on conflict (tenant_id, prefix) do update set last_number = thread_counters.last_number + 1`, tenant, prefix)
	return err
}

func counters(t *testing.T, db *postgres.DB, tenant string) (n int) {
	t.Helper()
	require.NoError(t, db.InTenant(t.Context(), tenant, func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), "select count(*) from thread_counters").Scan(&n)
	}))
	return n
}

// single is a pool of one connection, so that what a transaction leaves behind meets the next one.
func single(t *testing.T, db *pgtest.DB) *postgres.DB {
	t.Helper()
	one, err := postgres.Open(t.Context(), postgres.Config{URL: db.AppURL, MaxConns: 1})
	require.NoError(t, err)
	t.Cleanup(one.Close)
	return one
}

func TestInTenant(t *testing.T) {
	db := pgtest.New(t)
	tenant, app := db.Tenant(t, "acme"), single(t, db)
	ctx := t.Context()

	require.NoError(t, app.InTenant(ctx, tenant, func(tx pgx.Tx) error { return counter(ctx, tx, tenant, "A") }))
	require.Equal(t, 1, counters(t, app, tenant))

	t.Run("an error rolls back, and comes back as it is", func(t *testing.T) {
		mine := fault.Missing("agent")
		err := app.InTenant(ctx, tenant, func(tx pgx.Tx) error { return errors.Join(counter(ctx, tx, tenant, "B"), mine) })
		require.ErrorIs(t, err, mine)
		require.Equal(t, 1, counters(t, app, tenant))
	})
	t.Run("a panic rolls back, and goes on", func(t *testing.T) {
		require.PanicsWithValue(t, "mine", func() {
			_ = app.InTenant(ctx, tenant, func(tx pgx.Tx) error { _ = counter(ctx, tx, tenant, "B"); panic("mine") })
		})
		require.Equal(t, 1, counters(t, app, tenant))
	})
	t.Run("an error that was swallowed commits nothing", func(t *testing.T) {
		err := app.InTenant(ctx, tenant, func(tx pgx.Tx) error {
			_ = counter(ctx, tx, tenant, "B")
			_, _ = tx.Exec(ctx, "select 1/0")
			return nil
		})
		require.Error(t, err)
		require.Equal(t, 1, counters(t, app, tenant))
	})
	t.Run("a cancelled request rolls back", func(t *testing.T) {
		gone, cancel := context.WithCancel(ctx)
		err := app.InTenant(gone, tenant, func(tx pgx.Tx) error { defer cancel(); return counter(ctx, tx, tenant, "B") })
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, 1, counters(t, app, tenant))
	})
	t.Run("the tenant ends with the transaction", func(t *testing.T) {
		var n int
		var setting *string
		require.NoError(t, app.Unbound(ctx, func(tx pgx.Tx) error {
			return tx.QueryRow(ctx, "select count(*), nullif(current_setting('app.tenant_id', true), '') from thread_counters").Scan(&n, &setting)
		}))
		require.Zero(t, n)
		require.Nil(t, setting)
	})
	t.Run("without a tenant nothing runs", func(t *testing.T) {
		for _, id := range []string{"", "acme", "'; drop table threads; --", tenant + "'", " " + tenant, tenant[:35] + "\x00"} {
			err := app.InTenant(ctx, id, func(pgx.Tx) error { panic("run") })
			require.ErrorIs(t, err, postgres.ErrNoTenant)
			require.ErrorIs(t, app.InTenantRelaxed(ctx, id, func(pgx.Tx) error { panic("run") }), postgres.ErrNoTenant)
		}
	})
	t.Run("relaxed", func(t *testing.T) {
		var in, after string
		require.NoError(t, app.InTenantRelaxed(ctx, tenant, func(tx pgx.Tx) error {
			return errors.Join(counter(ctx, tx, tenant, "R"), tx.QueryRow(ctx, "show synchronous_commit").Scan(&in))
		}))
		require.NoError(t, app.InTenant(ctx, tenant, func(tx pgx.Tx) error {
			return tx.QueryRow(ctx, "show synchronous_commit").Scan(&after)
		}))
		require.Equal(t, []string{"off", "on"}, []string{in, after})
		require.Equal(t, 2, counters(t, app, tenant))
	})
	t.Run("ids are strings and times are UTC", func(t *testing.T) {
		var id string
		var at time.Time
		require.NoError(t, app.InTenant(ctx, tenant, func(tx pgx.Tx) error {
			return tx.QueryRow(ctx, "select id, created_at from tenants where id = $1", tenant).Scan(&id, &at)
		}))
		require.Equal(t, tenant, id)
		require.Equal(t, time.UTC, at.Location())
	})
}

func TestALostTransactionRunsAgain(t *testing.T) {
	db := pgtest.New(t)
	tenant, ctx := db.Tenant(t, "acme"), t.Context()

	t.Run("deadlock", func(t *testing.T) {
		var ready, all sync.WaitGroup
		ready.Add(2)
		var runs atomic.Int32
		cross := func(first, second string) error {
			meet := sync.OnceFunc(func() { ready.Done(); ready.Wait() }) // both hold their first row; once
			return db.App.InTenant(ctx, tenant, func(tx pgx.Tx) error {
				runs.Add(1)
				if err := counter(ctx, tx, tenant, first); err != nil {
					return err
				}
				meet()
				return counter(ctx, tx, tenant, second)
			})
		}
		var a, b error
		all.Go(func() { a = cross("A", "B") })
		all.Go(func() { b = cross("B", "A") })
		all.Wait()
		require.NoError(t, a)
		require.NoError(t, b)
		require.GreaterOrEqual(t, runs.Load(), int32(3))
	})
	t.Run("not for ever", func(t *testing.T) {
		runs := 0
		err := db.App.InTenant(ctx, tenant, func(pgx.Tx) error { runs++; return &pgconn.PgError{Code: "40001"} })
		require.Error(t, err)
		require.Equal(t, 6, runs)
	})
	t.Run("another error once", func(t *testing.T) {
		runs := 0
		err := db.App.InTenant(ctx, tenant, func(pgx.Tx) error { runs++; return &pgconn.PgError{Code: "23505"} })
		require.True(t, postgres.IsUnique(err, ""))
		require.Equal(t, 1, runs)
	})
	t.Run("a connection that died meanwhile", func(t *testing.T) {
		app := single(t, db)
		before := counters(t, app, tenant)
		_, err := db.Superuser(t).Exec(ctx, "select pg_terminate_backend(pid, 1000) from pg_stat_activity where usename = 'agentplatform_app' and datname = current_database()")
		require.NoError(t, err)
		require.Equal(t, before, counters(t, app, tenant))
	})
	t.Run("a statement whose columns a migration changed", func(t *testing.T) {
		app := single(t, db)
		read := func() (columns int) {
			require.NoError(t, app.InTenant(ctx, tenant, func(tx pgx.Tx) error {
				rows, err := tx.Query(ctx, "select * from tenants")
				if err != nil {
					return err
				}
				rows.Close()
				columns = len(rows.FieldDescriptions())
				return rows.Err()
			}))
			return columns
		}
		was := read()
		_, err := db.Superuser(t).Exec(ctx, "alter table tenants add column motto text")
		require.NoError(t, err)
		require.Equal(t, was+1, read())
	})
}

func TestErrors(t *testing.T) {
	db := pgtest.New(t)
	tenant, ctx := db.Tenant(t, "acme"), t.Context()
	exec := func(sql string, args ...any) error {
		return db.App.InTenant(ctx, tenant, func(tx pgx.Tx) error { _, err := tx.Exec(ctx, sql, args...); return err })
	}
	user := `insert into users (tenant_id, id, email, role) values ($1, $2, $3, $4)`
	require.NoError(t, exec(user, tenant, ident.New(), "a@acme.test", "owner"))
	err := exec(user, tenant, ident.New(), "A@acme.test", "owner")
	require.True(t, postgres.IsUnique(err, "users_email"))
	require.False(t, postgres.IsUnique(err, "users_pkey"))
	require.False(t, postgres.IsCheck(err, ""))
	err = exec(user, tenant, ident.New(), "b@acme.test", "king")
	require.True(t, postgres.IsCheck(err, "user_role_check"))
	err = exec(`insert into agents (tenant_id, id, name, template_id) values ($1, $2, 'x', $2)`, tenant, ident.New())
	require.True(t, postgres.IsForeignKey(err, ""))
	err = exec(user, ident.New(), ident.New(), "c@acme.test", "owner")
	require.True(t, postgres.IsDenied(err))

	for _, text := range []string{"nul \x00", "not \xff UTF-8"} {
		err := exec(user, tenant, ident.New(), text, "owner")
		require.Equal(t, fault.ValidationError, fault.From(err).Type, "%q: %v", text, err)
	}
	err = exec(`select $1::text::jsonb`, `"\u0000"`)
	require.Equal(t, fault.ValidationError, fault.From(err).Type)

	_, err = postgres.Open(ctx, postgres.Config{URL: "postgres://app:hunter2@host:notaport/"})
	require.Error(t, err)
	require.NotContains(t, err.Error(), "hunter2")
}

// A transaction with one query is three round trips: the client sends three times.
// An instance that is frozen in a transaction loses it, and its locks: the server says so to whoever asks.
func TestAnIdleTransactionEnds(t *testing.T) {
	db := pgtest.New(t)
	require.ErrorIs(t, db.App.Unbound(t.Context(), func(tx pgx.Tx) error {
		var limit string
		if err := tx.QueryRow(t.Context(), `show idle_in_transaction_session_timeout`).Scan(&limit); err != nil {
			return err
		}
		require.Equal(t, "2min", limit)
		_, err := tx.Exec(t.Context(), `set local idle_in_transaction_session_timeout = 1`) // two minutes in a millisecond
		require.NoError(t, err)
		require.Eventually(t, func() bool { return tx.Conn().Ping(t.Context()) != nil }, time.Minute, 50*time.Millisecond)
		return errGone
	}), errGone)
}

var errGone = errors.New("gone")

func TestRoundTrips(t *testing.T) {
	db := pgtest.New(t)
	tenant := db.Tenant(t, "acme")
	var sent atomic.Int32
	app, err := postgres.Open(t.Context(), postgres.Config{URL: counted(t, db.AppTCPURL, &sent), MaxConns: 1})
	require.NoError(t, err)
	t.Cleanup(app.Close)
	counters(t, app, tenant) // connects, and prepares the query
	sent.Store(0)
	counters(t, app, tenant)
	require.EqualValues(t, 3, sent.Load())
}

// counted is the URL of a proxy that counts what the client sends before it reads.
func counted(t *testing.T, to string, sent *atomic.Int32) string {
	u, err := url.Parse(to)
	require.NoError(t, err)
	server, err := net.Dial("tcp", u.Host)
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var both sync.WaitGroup
	t.Cleanup(func() { l.Close(); server.Close(); both.Wait() })
	both.Go(func() {
		client, err := l.Accept()
		if err != nil {
			return
		}
		both.Go(func() { _, _ = io.Copy(client, server) })
		defer server.Close()
		for buf := make([]byte, 64<<10); ; {
			n, err := client.Read(buf)
			if err != nil {
				return
			}
			sent.Add(1)
			if _, err := server.Write(buf[:n]); err != nil {
				return
			}
		}
	})
	u.Host = l.Addr().String()
	return u.String()
}

func BenchmarkInTenant(b *testing.B) {
	db := pgtest.New(b)
	tenant, ctx := db.Tenant(b, "acme"), b.Context()
	one := func(tx pgx.Tx) error {
		var slug string
		return tx.QueryRow(ctx, "select slug from tenants where id = $1", tenant).Scan(&slug)
	}
	b.Run("one select", func(b *testing.B) {
		for b.Loop() {
			require.NoError(b, db.App.InTenant(ctx, tenant, one))
		}
	})
	b.Run("one select, parallel", func(b *testing.B) {
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				if err := db.App.InTenant(ctx, tenant, one); err != nil {
					b.Error(err)
				}
			}
		})
	})
	b.Run("floor: the select alone", func(b *testing.B) {
		conn := db.Superuser(b)
		for b.Loop() {
			var slug string
			require.NoError(b, conn.QueryRow(ctx, "select slug from tenants where id = $1", tenant).Scan(&slug))
		}
	})
}
