package migrate_test

import (
	"context"
	"io/fs"
	"maps"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/postgres/migrate"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/schema"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// later are migrations after the schema's own, which the database of a test has already.
func later(t *testing.T, more map[string]string) fs.FS {
	all := fstest.MapFS{}
	files, err := fs.Glob(schema.SQL, "sql/*.sql")
	require.NoError(t, err)
	for _, name := range files {
		text, err := fs.ReadFile(schema.SQL, name)
		require.NoError(t, err)
		all[name] = &fstest.MapFile{Data: text}
	}
	for name, sql := range more {
		all["sql/"+name] = &fstest.MapFile{Data: []byte(sql)}
	}
	return all
}

func TestUp(t *testing.T) {
	db := pgtest.New(t)
	require.NoError(t, migrate.Up(t.Context(), db.SuperURL, schema.SQL), "nothing to do")

	first := map[string]string{"90001_a.sql": "create table a (v int); insert into a values (1);"}
	require.NoError(t, migrate.Up(t.Context(), db.SuperURL, later(t, first)))
	broken := maps.Clone(first)
	broken["90002_b.sql"] = "insert into a values (2);"
	broken["90003_c.sql"] = "insert into a values (3); insert into missing values (1);"
	require.ErrorContains(t, migrate.Up(t.Context(), db.SuperURL, later(t, broken)), "missing")
	require.Equal(t, 2, count(t, db), "a migration counts as a whole, and those before it stay")
	broken["90003_c.sql"] = "insert into a values (3);"
	require.NoError(t, migrate.Up(t.Context(), db.SuperURL, later(t, broken)))
	require.Equal(t, 3, count(t, db))
}

func count(t *testing.T, db *pgtest.DB) (n int) {
	t.Helper()
	require.NoError(t, db.Superuser(t).QueryRow(t.Context(), "select count(*) from a").Scan(&n))
	return n
}

func TestUpByManyAtOnce(t *testing.T) {
	db := pgtest.New(t)
	files := later(t, map[string]string{
		"90001_a.sql": "create table a (v int);",
		"90002_b.sql": "select pg_sleep(0.1); insert into a values (1);",
	})
	var all sync.WaitGroup
	errs := make([]error, 6)
	for i := range errs {
		all.Go(func() { errs[i] = migrate.Up(t.Context(), db.SuperURL, files) })
	}
	all.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.Equal(t, 1, count(t, db))
}

func TestUpSaysWhatIsWrong(t *testing.T) {
	require.Error(t, migrate.Up(t.Context(), "postgres://%zz", schema.SQL))
	require.Error(t, migrate.Up(t.Context(), pgtest.New(t).SuperURL, fstest.MapFS{}))
}

func TestSetPassword(t *testing.T) {
	db := pgtest.New(t)
	conn := db.Superuser(t)
	_, err := conn.Exec(t.Context(), `create role "odd ""name" nologin`)
	require.NoError(t, err)
	t.Cleanup(func() { // roles are the server's, not the database's
		_, err := conn.Exec(context.Background(), `drop role "odd ""name"`)
		require.NoError(t, err)
	})
	const password = `it's "a" \ pässword`
	require.NoError(t, migrate.SetPassword(t.Context(), db.SuperURL, `odd "name`, password))
	config, err := pgx.ParseConfig(db.SuperURL)
	require.NoError(t, err)
	config.User, config.Password = `odd "name`, password
	as, err := pgx.ConnectConfig(t.Context(), config)
	require.NoError(t, err)
	require.NoError(t, as.Close(t.Context()))
	require.Error(t, migrate.SetPassword(t.Context(), db.SuperURL, "nobody_of_that_name", "x"))
	require.Error(t, migrate.SetPassword(t.Context(), db.SuperURL, `odd "name`, ""))
}
