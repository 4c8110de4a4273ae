package postgres_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
)

func TestOnce(t *testing.T) {
	db := pgtest.New(t)
	a, b, ctx := db.Tenant(t, "acme"), db.Tenant(t, "globex"), t.Context()
	app := single(t, db)
	const insert = "insert into thread_counters (tenant_id, prefix, last_number) values ($1, $2, 1)"

	var relaxed string
	batch := &pgx.Batch{}
	batch.Queue(insert, a, "A")
	batch.Queue("show synchronous_commit").QueryRow(func(row pgx.Row) error { return row.Scan(&relaxed) })
	require.NoError(t, app.OnceRelaxed(ctx, a, batch))
	require.Equal(t, "off", relaxed)

	whole := &pgx.Batch{}
	whole.Queue(insert, a, "B")
	whole.Queue(insert, a, "A")
	require.True(t, postgres.IsUnique(app.Once(ctx, a, whole), "thread_counters_pkey"))
	foreign := &pgx.Batch{}
	foreign.Queue(insert, b, "C")
	foreign.Queue(insert, a, "C")
	require.True(t, postgres.IsDenied(app.Once(ctx, b, foreign)))
	text := &pgx.Batch{}
	text.Queue(insert, a, "nul \x00")
	require.Equal(t, fault.ValidationError, fault.From(app.Once(ctx, a, text)).Type)
	require.Equal(t, []int{1, 0}, []int{counters(t, app, a), counters(t, app, b)}, "each batch is a whole, or nothing")

	for _, id := range []string{"", "acme", a + "'"} {
		require.ErrorIs(t, app.Once(ctx, id, whole), postgres.ErrNoTenant)
		require.ErrorIs(t, app.OnceRelaxed(ctx, id, whole), postgres.ErrNoTenant)
	}
	require.ErrorIs(t, app.Unbound(ctx, func(tx pgx.Tx) error {
		n, err := try(ctx, tx, "select from thread_counters")
		require.Zero(t, n, "the tenant ended with the batch")
		return errors.Join(err, errRollBack)
	}), errRollBack)
}

// A batch that is sent again may get another connection, where nothing of it is prepared.
func TestOnceAgain(t *testing.T) {
	db := pgtest.New(t)
	tenant := db.Tenant(t, "acme")
	var batch pgx.Batch
	slug := ""
	batch.Queue("select slug from tenants where id = $1", tenant).QueryRow(func(row pgx.Row) error { return row.Scan(&slug) })
	for range 2 {
		slug = ""
		require.NoError(t, single(t, db).Once(t.Context(), tenant, &batch))
		require.Equal(t, "acme", slug)
	}
}

func TestIn(t *testing.T) {
	db := pgtest.New(t)
	a, b, ctx := db.Tenant(t, "acme"), db.Tenant(t, "globex"), t.Context()
	app := single(t, db) // a connection that is not given back would block the next query
	for tenant, slug := range map[string]string{a: "acme", b: "globex"} {
		rows, err := app.In(tenant).Query(ctx, "select slug from tenants where slug <> $1", "x")
		require.NoError(t, err)
		slugs, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		require.Equal(t, []string{slug}, slugs)
	}
	rows, err := app.In(a).Query(ctx, "select generate_series(1, 1000)")
	require.NoError(t, err)
	require.True(t, rows.Next())
	rows.Close() // early
	rows, err = app.In(a).Query(ctx, "select 1 / (2 - n) from generate_series(1, 2) n")
	if err == nil {
		_, err = pgx.CollectRows(rows, pgx.RowTo[int])
	}
	require.ErrorContains(t, err, "division by zero")
	rows, err = app.In(a).Query(ctx, "no statement")
	if err == nil {
		_, err = pgx.CollectRows(rows, pgx.RowTo[int])
	}
	require.ErrorContains(t, err, "syntax error")
	_, err = app.In("").Query(ctx, "select 1") //nolint:sqlclosecheck // there are no rows
	require.ErrorIs(t, err, postgres.ErrNoTenant)
	require.Equal(t, 0, counters(t, app, a))
}
