package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
)

// Nobody lists the tables here: they come from the catalog, so that a new one is tested by being there.

func TestEveryTableIsProtected(t *testing.T) {
	db := pgtest.New(t)
	super := db.Superuser(t)
	all := tables(t, super)
	require.GreaterOrEqual(t, len(all), 10)
	require.Empty(t, faults(t, super))

	a, b := ident.New(), ident.New()
	g := &generator{rows: map[string]map[string]map[string]any{}}
	g.fill(t, super, all, a)
	g.fill(t, super, all, b)
	t.Run("with the grants as they are", func(t *testing.T) { require.Empty(t, crossings(t, db.App, all, g, a, b, false)) })
	// The policies must hold by themselves, also when somebody grants too much.
	_, err := super.Exec(t.Context(), "grant all on all tables in schema public to agentplatform_app")
	require.NoError(t, err)
	t.Run("with every grant there is", func(t *testing.T) { require.Empty(t, crossings(t, db.App, all, g, a, b, true)) })
	t.Run("all rows are still there", func(t *testing.T) {
		for _, v := range all {
			var n int
			require.NoError(t, super.QueryRow(t.Context(), "select count(*) from "+pgx.Identifier{v.name}.Sanitize()).Scan(&n))
			require.Equal(t, 2, n, v.name)
		}
	})
}

// The test of the test: each of these mistakes must be found.
func TestAMistakeIsFound(t *testing.T) {
	const naked = `create table naked (tenant_id uuid not null, id uuid not null, primary key (tenant_id, id));
		grant select, insert, update, delete on naked to agentplatform_app; `
	for mistake, finding := range map[string]string{
		naked: "naked: row-level security is not enabled",
		naked + `alter table naked enable row level security; create policy p on naked using (tenant_id = current_tenant());`: "naked: row-level security is not forced",
		naked + `select protect_tenant('naked'); create policy too on naked using (true);`:                                    "naked: B reads",
		naked + `select protect_tenant('naked'); create policy too on naked for insert with check (true);`:                    "naked: B inserts",
		naked + `select protect_tenant('naked'); create policy too on naked for update using (true) with check (true);`:       "naked: B moves",
		naked + `select protect_tenant('naked'); create policy too on naked for delete using (true);`:                         "naked: B deletes",
		naked + `alter table naked enable row level security; alter table naked force row level security;
			create policy p on naked using (current_tenant() is null or tenant_id = current_tenant());`: "naked: no tenant reads",
		naked + `select protect_tenant('naked'); alter table naked add column user_id uuid, add column agent_id uuid;
			alter table agents add unique (id); alter table naked add foreign key (agent_id) references agents (id);`: "naked: foreign key naked_agent_id_fkey",
		`create table shared (id uuid); grant select on shared to agentplatform_app`:                                   "shared: has no tenant_id",
		`grant truncate on threads to agentplatform_app`:                                                               "threads: the application may truncate",
		`create function all_threads() returns setof threads language sql security definer as 'select * from threads'`: "all_threads: runs with the rights of",
		`alter table threads owner to agentplatform_app`:                                                               "agentplatform_app owns threads",
	} {
		t.Run(finding, func(t *testing.T) {
			db := pgtest.New(t)
			super := db.Superuser(t)
			_, err := super.Exec(t.Context(), mistake)
			require.NoError(t, err)
			found := faults(t, super)
			if len(found) == 0 {
				all := tables(t, super)
				a, b := ident.New(), ident.New()
				g := &generator{rows: map[string]map[string]map[string]any{}}
				g.fill(t, super, all, a)
				g.fill(t, super, all, b)
				found = crossings(t, db.App, all, g, a, b, false)
			}
			require.Contains(t, strings.Join(found, "\n"), finding)
		})
	}
}

// faults is what the catalog alone shows to be wrong.
func faults(t *testing.T, conn *pgx.Conn) []string {
	t.Helper()
	rows, err := conn.Query(t.Context(), `
		with relation as (
			select c.oid, c.relname, c.relrowsecurity, c.relforcerowsecurity, pg_get_userbyid(c.relowner) as owner,
			  exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'tenant_id' and not a.attisdropped) or c.relname = 'tenants' as tenants
			from pg_class c join pg_namespace n on n.oid = c.relnamespace
			where c.relkind in ('r', 'p') and n.nspname not like 'pg\_%' and n.nspname <> 'information_schema')
		select relname || ': row-level security is not enabled' from relation where tenants and not relrowsecurity
		union all select relname || ': row-level security is not forced' from relation where tenants and not relforcerowsecurity
		union all select relname || ': the application may truncate' from relation where has_table_privilege('agentplatform_app', oid, 'truncate, references, trigger')
		union all select 'agentplatform_app owns ' || relname from relation where owner = 'agentplatform_app'
		union all select relname || ': has no tenant_id, and the application may use it' from relation
			where not tenants and has_table_privilege('agentplatform_app', oid, 'select, insert, update, delete')
		union all select r.relname || ': tenant_id may be null' from relation r join pg_attribute a on a.attrelid = r.oid
			where a.attname = 'tenant_id' and not a.attnotnull
		-- a foreign key is checked without policies: one without the tenant tells, and keeps, other tenants' rows
		union all select child.relname || ': foreign key ' || f.conname || ' leaves the tenant out'
			from pg_constraint f join relation child on child.oid = f.conrelid join relation parent on parent.oid = f.confrelid
			where f.contype = 'f' and child.tenants and parent.tenants and not exists (
				select from unnest(f.conkey, f.confkey) as k(c, p)
				join pg_attribute ca on ca.attrelid = f.conrelid and ca.attnum = k.c and ca.attname = 'tenant_id'
				join pg_attribute pa on pa.attrelid = f.confrelid and pa.attnum = k.p
				  and pa.attname = case parent.relname when 'tenants' then 'id' else 'tenant_id' end)
		union all select p.proname || ': runs with the rights of ' || o.rolname || ', which no policy binds'
			from pg_proc p join pg_roles o on o.oid = p.proowner join pg_namespace n on n.oid = p.pronamespace
			where p.prosecdef and n.nspname not like 'pg\_%' and (o.rolsuper or o.rolbypassrls)
		union all select p.proname || ': runs with the rights of its owner and its caller''s search_path'
			from pg_proc p join pg_namespace n on n.oid = p.pronamespace
			where p.prosecdef and n.nspname not like 'pg\_%' and not exists (select from unnest(p.proconfig) s where s like 'search_path=%')
		order by 1`)
	require.NoError(t, err)
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return found
}

var errRollBack = errors.New("roll back")

// crossings is what a transaction of tenant b can do to tenant a's rows, and one of no tenant to anybody's. granted says that the
// role has every grant, so that b must at least reach its own rows: else this would prove nothing.
func crossings(t *testing.T, app *postgres.DB, all []table, g *generator, a, b string, granted bool) (found []string) {
	t.Helper()
	complain := func(v table, text string, args ...any) {
		found = append(found, v.name+": "+fmt.Sprintf(text, args...))
	}
	ctx := t.Context()
	require.ErrorIs(t, app.InTenant(ctx, b, func(tx pgx.Tx) error {
		for _, v := range all {
			name, tenant := pgx.Identifier{v.name}.Sanitize(), pgx.Identifier{v.tenant}.Sanitize()
			if n, err := try(ctx, tx, "select from "+name+" where "+tenant+" = $1", a); reached(n, err) {
				complain(v, "B reads %d of A's rows (%v)", n, err)
			}
			if n, err := try(ctx, tx, "select from "+name); err == nil && n != 1 || granted && err != nil {
				complain(v, "B reads %d rows instead of its own one (%v)", n, err)
			}
			row := g.row(v, a)
			if n, err := try(ctx, tx, insertRow(v, row), row); !postgres.IsDenied(err) {
				complain(v, "B inserts %d rows as A's (%v)", n, err)
			}
			row = g.row(v, b)
			if v.name != "tenants" {
				if _, err := try(ctx, tx, insertRow(v, row), row); granted && err != nil && !postgres.IsUnique(err, "") {
					complain(v, "B cannot insert its own row: %v", err)
				}
			}
			// Once finding the rows, for which a policy must let them be read, and once without looking.
			for _, where := range []string{" where " + tenant + " is not null", ""} {
				if n, err := try(ctx, tx, "update "+name+" set "+tenant+" = $1"+where, b); n > 1 || err != nil && !postgres.IsDenied(err) {
					complain(v, "B takes A's rows: %d rows updated (%v)", n, err)
				}
				if n, err := try(ctx, tx, "update "+name+" set "+tenant+" = $1"+where, a); !postgres.IsDenied(err) {
					complain(v, "B moves %d rows to A (%v)", n, err)
				}
				if n, err := try(ctx, tx, "delete from "+name+where); n > 1 || err != nil && !postgres.IsDenied(err) && !postgres.IsForeignKey(err, "") {
					complain(v, "B deletes A's rows: %d rows deleted (%v)", n, err)
				}
			}
			if n, err := try(ctx, tx, "set local row_security = off; select from "+name); reached(n, err) {
				complain(v, "B turns row-level security off and reads %d rows (%v)", n, err)
			}
		}
		return errRollBack
	}), errRollBack)
	for _, setting := range []string{"select", "set local app.tenant_id = ''", "reset app.tenant_id"} {
		require.ErrorIs(t, app.Unbound(ctx, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, setting); err != nil {
				return err
			}
			for _, v := range all {
				name, tenant := pgx.Identifier{v.name}.Sanitize(), pgx.Identifier{v.tenant}.Sanitize()
				if n, err := try(ctx, tx, "select from "+name); reached(n, err) {
					complain(v, "no tenant reads %d rows (%v)", n, err)
				}
				row := g.row(v, a)
				if n, err := try(ctx, tx, insertRow(v, row), row); !postgres.IsDenied(err) {
					complain(v, "no tenant inserts %d rows (%v)", n, err)
				}
				if n, err := try(ctx, tx, "update "+name+" set "+tenant+" = $1", a); reached(n, err) {
					complain(v, "no tenant updates %d rows (%v)", n, err)
				}
				if n, err := try(ctx, tx, "delete from "+name); reached(n, err) {
					complain(v, "no tenant deletes %d rows (%v)", n, err)
				}
			}
			return errRollBack
		}), errRollBack)
	}
	return found
}

// reached reports whether a statement did anything: else it found no row, or was denied.
func reached(n int64, err error) bool { return n != 0 || err != nil && !postgres.IsDenied(err) }

// try runs a statement and undoes it. n counts the rows that it read or wrote.
func try(ctx context.Context, tx pgx.Tx, sql string, args ...any) (n int64, err error) {
	savepoint, err := tx.Begin(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, savepoint.Rollback(ctx)) }()
	tag, err := savepoint.Exec(ctx, sql, args...)
	return tag.RowsAffected(), err
}
