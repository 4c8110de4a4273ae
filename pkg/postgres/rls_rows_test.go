package postgres_test

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/ident"
)

// examples are values that the generator cannot find by itself, for the n-th row of a table: column → JSON value.
// A column needs none when its type, its default, its foreign key or a check of the form `c in ('a', 'b')`, its own or its domain's, says enough.
var examples = map[string]func(n int) map[string]any{
	"schedules": func(int) map[string]any { return map[string]any{"routine_id": ident.New()} },
	"integration_replies": func(int) map[string]any {
		return map[string]any{"address": map[string]any{}}
	},
	"prompt_texts": func(n int) map[string]any {
		return map[string]any{"sha256": fmt.Sprintf("\\x%064x", n)}
	},
	"audit_events": func(n int) map[string]any {
		return map[string]any{
			"event_hash": fmt.Sprintf("%064x", n), "prev_hash": fmt.Sprintf("%064x", n+1),
		}
	},
}

// table is a table with tenants' rows, as the catalog describes it.
type table struct {
	name    string
	tenant  string // its column: tenant_id, and id of tenants itself
	columns []column
	parents []reference
}

// column is one that an insert must name.
type column struct{ name, kind, literal string }

// reference is one column of a foreign key.
type reference struct{ column, parent, parentColumn string }

// tables lists every table that holds rows of tenants: whatever has a column tenant_id, and tenants.
func tables(t *testing.T, conn *pgx.Conn) []table {
	t.Helper()
	rows, err := conn.Query(t.Context(), `
		select c.relname, a.attname from pg_class c join pg_attribute a on a.attrelid = c.oid
		where c.relkind in ('r', 'p') and not c.relispartition and c.relnamespace = 'public'::regnamespace
		  and a.attname = case c.relname when 'tenants' then 'id' else 'tenant_id' end and not a.attisdropped order by c.relname`)
	require.NoError(t, err)
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (v table, err error) {
		return v, row.Scan(&v.name, &v.tenant)
	})
	require.NoError(t, err)
	for i := range all {
		all[i].columns = columns(t, conn, all[i].name)
		all[i].parents = references(t, conn, all[i].name)
	}
	return all
}

var firstOf = regexp.MustCompile(`\(\(?(\w+) = ANY \(ARRAY\['([^']*)'`)

func columns(t *testing.T, conn *pgx.Conn, name string) []column {
	t.Helper()
	rows, err := conn.Query(t.Context(), `
		select attname, format_type(coalesce(nullif(typbasetype, 0), atttypid), null) from pg_attribute join pg_type y on y.oid = atttypid
		where attrelid = $1::text::regclass and attnum > 0 and not attisdropped
		  and attnotnull and not atthasdef and attidentity = ''`, name)
	require.NoError(t, err)
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (v column, err error) {
		return v, row.Scan(&v.name, &v.kind)
	})
	require.NoError(t, err)
	rows, err = conn.Query(t.Context(), `
		select pg_get_constraintdef(oid) from pg_constraint where contype = 'c' and conrelid = $1::text::regclass
		union all select replace(pg_get_constraintdef(c.oid), 'VALUE', attname) from pg_constraint c
		join pg_attribute on atttypid = contypid where contype = 'c' and attrelid = $1::text::regclass`, name)
	require.NoError(t, err)
	checks, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	literals := map[string]string{}
	for _, check := range checks {
		if m := firstOf.FindStringSubmatch(check); m != nil {
			literals[m[1]] = m[2]
		}
	}
	for i := range all {
		all[i].literal = literals[all[i].name]
	}
	return all
}

func references(t *testing.T, conn *pgx.Conn, name string) []reference {
	t.Helper()
	rows, err := conn.Query(t.Context(), `
		select a.attname, c.confrelid::regclass::text, p.attname
		from pg_constraint c cross join unnest(c.conkey, c.confkey) as k(child, parent)
		join pg_attribute a on a.attrelid = c.conrelid and a.attnum = k.child
		join pg_attribute p on p.attrelid = c.confrelid and p.attnum = k.parent
		where c.contype = 'f' and c.conrelid = $1::text::regclass`, name)
	require.NoError(t, err)
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (v reference, err error) {
		return v, row.Scan(&v.column, &v.parent, &v.parentColumn)
	})
	require.NoError(t, err)
	return all
}

// generator makes rows that satisfy a table's constraints.
type generator struct {
	n    int
	rows map[string]map[string]map[string]any // tenant → table → the row that children refer to
}

// row is a new row of the tenant, ready for insertRow. It is nil while a table that it must refer to has no row of that tenant.
func (g *generator) row(v table, tenant string) map[string]any {
	g.n++
	row := map[string]any{}
	for _, c := range v.columns {
		row[c.name] = g.value(c)
	}
	row[v.tenant] = tenant
	for _, p := range v.parents {
		if _, needed := row[p.column]; !needed {
			continue
		}
		parent, there := g.rows[tenant][p.parent]
		if !there {
			return nil
		}
		row[p.column] = parent[p.parentColumn]
	}
	if more, ok := examples[v.name]; ok {
		for column, value := range more(g.n) {
			row[column] = value
		}
	}
	return row
}

func (g *generator) value(c column) any {
	switch c.kind {
	case "uuid":
		return ident.New()
	case "text", "character varying":
		if c.literal != "" {
			return c.literal
		}
		return fmt.Sprintf("x%d", g.n)
	case "smallint", "integer", "bigint", "numeric":
		return g.n
	case "boolean":
		return false
	case "timestamp with time zone", "date":
		return time.Now().UTC()
	case "bytea":
		return `\x01`
	case "json", "jsonb":
		return map[string]any{}
	case "text[]":
		return []string{}
	}
	return nil // the insert fails, and says which column
}

// insertRow is the statement that inserts a row given as one jsonb argument.
func insertRow(v table, row map[string]any) string {
	list := ""
	for name := range row {
		if list != "" {
			list += ", "
		}
		list += pgx.Identifier{name}.Sanitize()
	}
	name := pgx.Identifier{v.name}.Sanitize()
	return fmt.Sprintf("insert into %s (%s) select %s from jsonb_populate_record(null::%s, $1)", name, list, list, name)
}

// fill puts one row of the tenant into every table, parents first.
func (g *generator) fill(t *testing.T, conn *pgx.Conn, all []table, tenant string) {
	t.Helper()
	g.rows[tenant] = map[string]map[string]any{}
	for progress := true; progress; {
		progress = false
		for _, v := range all {
			if g.rows[tenant][v.name] != nil {
				continue
			}
			row := g.row(v, tenant)
			if row == nil {
				continue
			}
			var stored map[string]any
			err := conn.QueryRow(t.Context(), insertRow(v, row)+" returning to_jsonb("+pgx.Identifier{v.name}.Sanitize()+".*)", row).Scan(&stored)
			require.NoError(t, err, "no row for table %s: give the generator what it misses, in examples (%v)", v.name, row)
			g.rows[tenant][v.name], progress = stored, true
		}
	}
	for _, v := range all {
		require.Contains(t, g.rows[tenant], v.name, "no row for table %s: it refers to what has none; add it to examples", v.name)
	}
}
