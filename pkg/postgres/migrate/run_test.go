package migrate_test

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/postgres/migrate"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/schema"
)

// run migrates db to the schema's own migrations and these.
func run(t *testing.T, db *pgtest.DB, more map[string]string, c migrate.Config) (migrate.Report, error) {
	t.Helper()
	c.Files = later(t, more)
	return migrate.Run(t.Context(), postgres.Config{URL: db.SuperURL}, c)
}

// version is the number of the schema's last migration.
func version(t *testing.T) int64 {
	files, err := fs.Glob(schema.SQL, "sql/*.sql")
	require.NoError(t, err)
	return int64(len(files))
}

func names(r migrate.Report) (names []string) {
	for _, a := range r.Applied {
		names = append(names, a.Name)
	}
	return names
}

func TestRunReports(t *testing.T) {
	db := pgtest.New(t)
	none, err := run(t, db, nil, migrate.Config{})
	require.NoError(t, err)
	require.Equal(t, migrate.Report{From: version(t), To: version(t), Applied: []migrate.Applied{}}, none)
	two := map[string]string{"90001_a.sql": "create table a (v int)", "90002_b.sql": "insert into a values (1)"}
	done, err := run(t, db, two, migrate.Config{})
	require.NoError(t, err)
	require.Equal(t, []any{version(t), int64(90002), []string{"90001_a.sql", "90002_b.sql"}}, []any{done.From, done.To, names(done)})
}

// What fails is said in a sentence: where, what, what is left, what to do.
func TestAMigrationSaysWhereItFailed(t *testing.T) {
	for name, c := range map[string]struct{ sql, want string }{
		"a missing table": {"create table b (v int);\n\ninsert into missing values (1);\n", `at line 3 (insert into missing values (1);): relation "missing" does not exist (SQLSTATE 42P01).`},
		"a typing error":  {"select 1;\nselect 'ü';\n\n  creat table b ();\n", `at line 4 (creat table b ();): syntax error at or near "creat" (SQLSTATE 42601).`},
		"a broken constraint": {"-- two; of them\ncreate table b (v int unique);\ninsert into b values (7);\ninsert into b\n  values (7);\n",
			`at line 4 (insert into b): duplicate key value violates unique constraint "b_v_key" (SQLSTATE 23505), constraint b_v_key of table b.`},
		"a function":  {"create function f() returns void language plpgsql as $$ begin\n  raise 'no;';\nend $$;\nselect 1;\nselect f();", "at line 5 (select f();): no; (SQLSTATE P0001), in PL/pgSQL function f() line 2 at RAISE."},
		"a long line": {"select " + strings.Repeat("1,", 100) + "1 from missing", "at line 1 (select " + strings.Repeat("1,", 36) + "1…): relation"},
	} {
		t.Run(name, func(t *testing.T) {
			db := pgtest.New(t)
			files := map[string]string{"90001_a.sql": "create table a (v int)", "90002_b.sql": c.sql}
			report, err := run(t, db, files, migrate.Config{})
			require.ErrorContains(t, err, "the migration 90002_b.sql failed "+c.want)
			require.ErrorContains(t, err, "All of it was rolled back: the database is at version 90001, and the release that is deployed goes on. Correct the file and deploy again")
			require.NotContains(t, err.Error(), "\n")
			require.NotContains(t, err.Error(), "(7) already exists", "no row")
			require.Equal(t, []string{"90001_a.sql"}, names(report))
			var pg *pgconn.PgError
			require.ErrorAs(t, err, &pg)

			var left bool
			require.NoError(t, db.Superuser(t).QueryRow(t.Context(), `select to_regclass('b') is not null or to_regproc('f') is not null`).Scan(&left))
			require.False(t, left)
			files["90002_b.sql"] = "create table b (v int)"
			report, err = run(t, db, files, migrate.Config{})
			require.NoError(t, err, "the corrected file")
			require.Equal(t, []any{int64(90001), int64(90002), []string{"90002_b.sql"}}, []any{report.From, report.To, names(report)})
		})
	}
}

// empty is the URL of an empty database on the test's server, for the superuser.
func empty(t *testing.T, db *pgtest.DB) string {
	t.Helper()
	super := db.Superuser(t)
	name := db.Name + "_empty"
	_, err := super.Exec(t.Context(), "create database "+name)
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := super.Exec(context.Background(), "drop database "+name+" with (force)")
		require.NoError(t, err)
	})
	return strings.Replace(db.SuperURL, "/"+db.Name, "/"+name, 1)
}

// The statements that are counted here are those that the server finds, in every file of the schema.
func TestTheLineIsFoundInEveryMigration(t *testing.T) {
	url := postgres.Config{URL: empty(t, pgtest.New(t))}
	files, err := fs.Glob(schema.SQL, "sql/*.sql")
	require.NoError(t, err)
	upTo := fstest.MapFS{}
	for i, name := range files {
		text, err := fs.ReadFile(schema.SQL, name)
		require.NoError(t, err)
		upTo[name] = &fstest.MapFile{Data: append(text[:len(text):len(text)], "\n\nselect 1 / 0;\n"...)}
		report, err := migrate.Run(t.Context(), url, migrate.Config{Files: upTo})
		require.ErrorContains(t, err, fmt.Sprintf("%s failed at line %d (select 1 / 0;): division by zero (SQLSTATE 22012).", path.Base(name), strings.Count(string(text), "\n")+3))
		require.Equal(t, int64(i), report.To)
		upTo[name] = &fstest.MapFile{Data: text}
		report, err = migrate.Run(t.Context(), url, migrate.Config{Files: upTo})
		require.NoError(t, err)
		require.Equal(t, int64(i+1), report.To)
	}
}

// A migration that cannot have its lock does not keep the traffic waiting behind it.
func TestAMigrationGivesUpItsLock(t *testing.T) {
	db := pgtest.New(t)
	reading := db.Superuser(t)
	tx, err := reading.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "select from threads")
	require.NoError(t, err)
	files := map[string]string{"90001_a.sql": "create table a (v int);\nalter table threads add column a int;"}
	_, err = run(t, db, files, migrate.Config{Lock: 50 * time.Millisecond})
	require.ErrorContains(t, err, "the migration 90001_a.sql failed at line 2 (alter table threads add column a int;): canceling statement due to lock timeout (SQLSTATE 55P03). All of it was rolled back")
	require.ErrorContains(t, err, "A running transaction holds a lock that it needs, for longer than 50ms. Deploy again when the database has less to do")
	require.NoError(t, tx.Rollback(t.Context()))
	_, err = run(t, db, files, migrate.Config{})
	require.NoError(t, err)
}

func TestAMigrationEndsInTime(t *testing.T) {
	db := pgtest.New(t)
	_, err := run(t, db, map[string]string{"90001_a.sql": "select pg_sleep(60)"}, migrate.Config{Statement: 50 * time.Millisecond})
	require.ErrorContains(t, err, "canceling statement due to statement timeout (SQLSTATE 57014). All of it was rolled back")
	require.ErrorContains(t, err, "It took longer than a migration may (50ms for each statement). Split it, and deploy again")

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	files := later(t, map[string]string{"90001_a.sql": "select pg_sleep(60)"})
	go func() {
		_, err := migrate.Run(ctx, postgres.Config{URL: db.SuperURL}, migrate.Config{Files: files})
		done <- err
	}()
	until(t, db, `select exists (select from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database())`)
	cancel() // the function's time is over
	err = <-done
	require.ErrorContains(t, err, "the migration 90001_a.sql failed at line 1 (select pg_sleep(60)): the time for it was over.")
	require.ErrorIs(t, err, context.Canceled)
}

// until waits for a condition of the database.
func until(t *testing.T, db *pgtest.DB, condition string) {
	t.Helper()
	super := db.Superuser(t)
	require.Eventually(t, func() bool {
		var met bool
		require.NoError(t, super.QueryRow(t.Context(), condition).Scan(&met))
		return met
	}, time.Minute, time.Millisecond)
}

// Whoever comes second waits for the first, but not for ever.
func TestOnlyOneProcessMigrates(t *testing.T) {
	db := pgtest.New(t)
	first := db.Superuser(t)
	_, err := first.Exec(t.Context(), "select pg_advisory_lock(x'6167656e74706c61'::bigint)") // as a process that migrates
	require.NoError(t, err)
	files := map[string]string{"90001_a.sql": "create table a (v int)"}
	_, err = run(t, db, files, migrate.Config{Wait: 100 * time.Millisecond})
	require.EqualError(t, err, "another process migrates this database and was not done after 100ms. Nothing was changed. Deploy again when it is done")

	done := make(chan error)
	go func() {
		_, err := migrate.Run(context.WithoutCancel(t.Context()), postgres.Config{URL: db.SuperURL}, migrate.Config{Files: later(t, files)})
		done <- err
	}()
	until(t, db, `select exists (select from pg_stat_activity where application_name = 'agentplatform-migrate' and datname = current_database())`)
	require.Empty(t, done)
	require.NoError(t, first.Close(t.Context()), "the first one dies")
	require.NoError(t, <-done)
}

// A release that is rolled back finds a database that knows more than it.
func TestADatabaseOfALaterReleaseIsLeftAlone(t *testing.T) {
	db := pgtest.New(t)
	_, err := run(t, db, map[string]string{"90001_a.sql": "create table a (v int)", "90002_b.sql": "select 1"}, migrate.Config{})
	require.NoError(t, err)
	for _, cloud := range []bool{false, true} {
		report, err := run(t, db, nil, migrate.Config{Cloud: cloud})
		require.NoError(t, err)
		require.Equal(t, migrate.Report{From: 90002, To: 90002, Applied: []migrate.Applied{}, Newer: []string{"90001_a.sql", "90002_b.sql"}}, report)
	}
}

func TestAHistoryThatDoesNotFitIsRefused(t *testing.T) {
	db := pgtest.New(t)
	files := map[string]string{"90001_a.sql": "create table a (v int)", "90003_c.sql": "select 1"}
	_, err := run(t, db, files, migrate.Config{})
	require.NoError(t, err)
	for name, c := range map[string]struct {
		change func(files map[string]string)
		want   string
	}{
		"edited":      {func(f map[string]string) { f["90001_a.sql"] += " -- of course" }, "the migration 90001_a.sql is not the one that was applied to this database on 20"},
		"renamed":     {func(f map[string]string) { f["90003_d.sql"] = f["90003_c.sql"]; delete(f, "90003_c.sql") }, "as 90003_c.sql: what was applied is never edited. Nothing was changed."},
		"between":     {func(f map[string]string) { f["90002_b.sql"] = "select 1" }, "the database lacks the migration 90002_b.sql but has later ones (up to number 90003)"},
		"another one": {func(f map[string]string) { delete(f, "90003_c.sql"); f["90002_b.sql"] = "select 1" }, "the database lacks the migration 90002_b.sql but has later ones"},
		"gone":        {func(f map[string]string) { delete(f, "90001_a.sql") }, "the database has the migration 90001_a.sql, which this release lacks although it has the later 90003_c.sql"},
	} {
		changed := maps.Clone(files)
		c.change(changed)
		_, err := run(t, db, changed, migrate.Config{})
		require.ErrorContains(t, err, c.want, name)
	}
	files["90003_c.sql"] = "select\r\n1"
	_, err = run(t, db, files, migrate.Config{})
	require.Error(t, err)
	files["90001_a.sql"], files["90003_c.sql"] = "create table a (v int)", "select 1"
	files["90004_d.sql"] = "select 1;\nselect 2;\n"
	_, err = run(t, db, files, migrate.Config{})
	require.NoError(t, err)
	files["90004_d.sql"] = "select 1;\r\nselect 2;\r\n"
	_, err = run(t, db, files, migrate.Config{})
	require.NoError(t, err, "a checkout's line ends are no change")
}

// A database whose migrations goose kept goes on with ours.
func TestAHistoryOfGooseGoesOn(t *testing.T) {
	db := pgtest.New(t)
	super := db.Superuser(t)
	_, err := super.Exec(t.Context(), fmt.Sprintf(`drop table schema_migrations;
		create table goose_db_version (id int generated always as identity, version_id bigint, is_applied boolean, tstamp timestamp default now());
		insert into goose_db_version (version_id, is_applied) select v, true from generate_series(0, %d) v`, version(t)))
	require.NoError(t, err)
	files := map[string]string{"90001_a.sql": "create table a (v int)"}
	report, err := run(t, db, files, migrate.Config{})
	require.NoError(t, err)
	require.Equal(t, []any{version(t), int64(90001), []string{"90001_a.sql"}}, []any{report.From, report.To, names(report)})
	report, err = run(t, db, files, migrate.Config{})
	require.NoError(t, err)
	require.Empty(t, report.Applied)
}

func TestNoErrorTellsAPassword(t *testing.T) {
	db := pgtest.New(t)
	config, err := pgx.ParseConfig(db.SuperURL)
	require.NoError(t, err)
	const secret = "s3cret-Word"
	for url, want := range map[string]string{
		"postgres://nobody:" + secret + "@%zz/x":                                                                                  "the connection URL cannot be parsed",
		"postgres://nobody:" + secret + "@127.0.0.1:1/x?sslmode=disable":                                                          "the database at 127.0.0.1 does not let nobody in: ",
		fmt.Sprintf("host=%s port=%d user=agentplatform_nobody password=%s dbname=%s", config.Host, config.Port, secret, db.Name): "does not let agentplatform_nobody in: password authentication failed for user \"agentplatform_nobody\" (SQLSTATE 28P01). Nothing was changed",
	} {
		_, err := migrate.Run(t.Context(), postgres.Config{URL: url}, migrate.Config{Files: schema.SQL})
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), secret)
		require.NotContains(t, err.Error(), "postgres://")
		require.NotContains(t, err.Error(), "\n")
	}
}

func TestFilesThatAreNoMigrations(t *testing.T) {
	db := pgtest.New(t)
	for want, files := range map[string]fstest.MapFS{
		"there is no file":                {},
		"x.sql is not named":              {"x.sql": {}},
		"1_b.sql does not come after 1_a": {"1_a.sql": {}, "1_b.sql": {}},
		"9_b.sql does not come after 10":  {"10_a.sql": {}, "9_b.sql": {}},
	} {
		_, err := migrate.Run(t.Context(), postgres.Config{URL: db.SuperURL}, migrate.Config{Files: files})
		require.ErrorContains(t, err, want)
	}
}

// RDS may refuse the owner's password and take a token: it is tried where the password was refused, and only there.
func TestATokenWhereThePasswordIsRefused(t *testing.T) {
	db := pgtest.New(t)
	config, err := pgx.ParseConfig(db.SuperURL)
	require.NoError(t, err)
	const role, good = "agentplatform_token_owner", "a-token-of-the-role"
	_, err = db.Superuser(t).Exec(t.Context(), fmt.Sprintf(`create role %s superuser login password '%s'`, role, good))
	require.NoError(t, err)
	asked := 0
	token := func(_ context.Context, server, of string) (string, error) {
		asked++
		require.Equal(t, fmt.Sprintf("%s:%d", config.Host, config.Port), server)
		require.Equal(t, role, of)
		return good, nil
	}
	run := func(password string, token func(context.Context, string, string) (string, error)) error {
		url := fmt.Sprintf("host=%s port=%d user=%s password=%s dbname=%s", config.Host, config.Port, role, password, db.Name)
		_, err := migrate.Run(t.Context(), postgres.Config{URL: url, Password: token}, migrate.Config{Files: schema.SQL})
		return err
	}
	require.NoError(t, run(good, token))
	require.Zero(t, asked)
	require.NoError(t, run("another", token))
	require.Equal(t, 1, asked)
	require.ErrorContains(t, run("another", nil), "28P01")
	err = run("another", func(context.Context, string, string) (string, error) { return "a-bad-token", nil })
	require.ErrorContains(t, err, "28P01")
	require.NotContains(t, err.Error(), "a-bad-token")
}
