package migrate

import (
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/schema"
)

func TestStatements(t *testing.T) {
	for text, want := range map[string][]statement{
		"":                      nil,
		";; -- nothing\n;":      nil,
		"select 1":              {{1, "select 1"}},
		"-- a;b\nselect 1;\n\n": {{2, "select 1"}},
		"/* ; */ select ';', 'it''s;', E'\\';', \";\";\nselect 2;": {{1, `select ';', 'it''s;', E'\';', ";"`}, {2, "select 2"}},
		"do $$ begin a; end $$; do $x$ $$; $x$;":                   {{1, "do $$ begin a; end $$"}, {1, "do $x$ $$; $x$"}},
		"create function f() begin atomic\n select case when a then b end; select 2; end;\nselect 3": {
			{1, "create function f() begin atomic\n select case when a then b end; select 2; end"}, {3, "select 3"}},
		"select case when a then b end; select 2": {{1, "select case when a then b end"}, {1, "select 2"}},
		"select $1;\nselect 2":                    {{1, "select $1"}, {2, "select 2"}},
	} {
		require.Equal(t, want, statements(text), text)
	}
}

// What is cut here is what the server cuts: see TestAMigrationSaysWhereItFailed, which counts on it for every statement of the schema.
func TestTheSchemasStatementsEndWhereTheyEnd(t *testing.T) {
	names, err := fs.Glob(schema.SQL, "sql/*.sql")
	require.NoError(t, err)
	for _, name := range names {
		text, err := fs.ReadFile(schema.SQL, name)
		require.NoError(t, err)
		all := statements(string(text))
		require.NotEmpty(t, all, name)
		for _, s := range all {
			require.Regexp(t, `(?i)^(alter|create|do|drop|grant|insert|reset|revoke|select|set|update|delete|comment|with) ?`, s.text, "%s:%d", name, s.line)
		}
	}
}
