package postgres_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
)

func TestTheApplicationsRoleIsWeak(t *testing.T) {
	db := pgtest.New(t)
	super, app, ctx := db.Superuser(t), db.Connect(t, db.AppURL), t.Context()

	rows, err := super.Query(ctx, `select rolname from pg_roles where rolname like 'agentplatform\_%'
		and (rolsuper or rolbypassrls or rolcreaterole or rolcreatedb or rolreplication)`)
	require.NoError(t, err)
	strong, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Empty(t, strong, "no role of ours passes policies by")

	var owned, member int
	require.NoError(t, super.QueryRow(ctx, `select
		(select count(*) from pg_shdepend d join pg_roles r on r.oid = d.refobjid where d.deptype = 'o' and r.rolname = 'agentplatform_app'),
		(select count(*) from pg_auth_members m join pg_roles r on r.oid = m.member where r.rolname in ('agentplatform_app', 'agentplatform_reader'))`).Scan(&owned, &member))
	require.Zero(t, owned, "it owns nothing")
	require.Zero(t, member, "it is a member of nothing, so it can become nobody else")

	for _, sql := range []string{
		"create table mine (id int)", "create table pg_catalog.mine (id int)", "create schema mine", "create view mine as select 1",
		"create function mine() returns int language sql as 'select 1'", "create role mine", "create database mine",
		"alter table threads disable row level security", "alter table threads no force row level security",
		"create policy mine on threads using (true)", "drop policy tenant on threads", "drop table threads", "truncate threads",
		"alter table threads add column mine int", "create index mine on threads (title)",
		"create trigger mine before insert on threads execute function suppress_redundant_updates_trigger()",
		"alter role agentplatform_app bypassrls", "set role agentplatform_owner", "set role agentplatform_lookup", "set role postgres",
		"set session_replication_role = replica", "select protect_tenant('threads')", "copy threads to program 'cat'",
		"select pg_read_file('PG_VERSION')", "create extension dblink",
	} {
		_, err := app.Exec(ctx, sql)
		require.True(t, postgres.IsDenied(err), "%s: %v", sql, err)
	}
}

func TestTheReaderOnlyReads(t *testing.T) {
	db := pgtest.New(t)
	super, ctx := db.Superuser(t), t.Context()
	rows, err := super.Query(ctx, `
		select c.relname from pg_class c where c.relkind in ('r', 'p', 'v', 'm') and c.relnamespace = 'public'::regnamespace
		  and (has_table_privilege('agentplatform_reader', c.oid, 'insert, update, delete, truncate, references, trigger')
		    or has_any_column_privilege('agentplatform_reader', c.oid, 'insert, update, references'))
		union all select relname from pg_class c
		  where case c.relkind when 'S' then has_sequence_privilege('agentplatform_reader', c.oid, 'usage, update') else false end`)
	require.NoError(t, err)
	writable, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Empty(t, writable)

	all := tables(t, super)
	g := &generator{rows: map[string]map[string]map[string]any{}}
	tenants := []string{ident.New(), ident.New()}
	for _, tenant := range tenants {
		g.fill(t, super, all, tenant)
	}
	reader := db.Open(t, db.ReaderURL)
	require.ErrorIs(t, reader.Unbound(ctx, func(tx pgx.Tx) error {
		n, err := try(ctx, tx, "select from audit_events")
		require.NoError(t, err)
		require.EqualValues(t, 2, n, "the audit log of all tenants")
		for _, v := range all {
			name := pgx.Identifier{v.name}.Sanitize()
			row := g.row(v, tenants[0])
			_, err := try(ctx, tx, insertRow(v, row), row)
			require.True(t, postgres.IsDenied(err), "insert into %s: %v", v.name, err)
			for _, sql := range []string{"update " + name + " set " + v.tenant + " = " + v.tenant, "delete from " + name, "truncate " + name} {
				_, err := try(ctx, tx, sql)
				require.True(t, postgres.IsDenied(err), "%s: %v", sql, err)
			}
		}
		_, err = try(ctx, tx, "create table mine (id int)")
		require.True(t, postgres.IsDenied(err))
		return errRollBack
	}), errRollBack)
}
