package deployment_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	functions "github.com/agentplatform/agentplatform/functions/deployment"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/manifest"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/postgres/embedded"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/schema"
)

const secret = "a password for tests"

// cluster is a server on which nobody has migrated, with a database like the cloud's: its owner may make roles, and is no superuser.
type cluster struct {
	*embedded.Server
	super *pgx.Conn
	owner string // its URL
}

func fresh(t *testing.T, first ...string) cluster {
	t.Helper()
	server, err := embedded.Start(t.Context(), embedded.Config{Dir: pgtest.Folder(t), Password: secret})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop(context.Background())) })
	c := cluster{Server: server, super: connect(t, server.URL(embedded.Superuser, secret, embedded.Database)), owner: server.URL("platform_admin", secret, "agentplatform")}
	for _, sql := range append([]string{`create role platform_admin login createrole password '` + secret + `'`, `create database agentplatform owner platform_admin`}, first...) {
		_, err := c.super.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	return c
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

type migrated struct {
	From, To int64
	Applied  []struct {
		Name         string
		Milliseconds *int64
	}
	Newer   []string
	Message string
}

func call(t *testing.T, url string) (m migrated, err error) {
	rows, err := manifest.Parse(schema.Routes)
	require.NoError(t, err)
	row, _ := rows.Row("migrate")
	env := handler.NewEnv(row, &handler.Ports{Owner: func() postgres.Config { return postgres.Config{URL: url} }})
	ctx, cancel := context.WithTimeout(t.Context(), row.Timeout.Duration()) // as Lambda
	defer cancel()
	raw, err := functions.Migrate(env).Invoke(ctx, []byte(`null`))
	if err == nil {
		require.NoError(t, json.Unmarshal(raw, &m))
	}
	return m, err
}

func TestMigrate(t *testing.T) {
	c := fresh(t, `create role rds_iam`, `grant rds_iam to platform_admin with admin option`)
	names, err := fs.Glob(schema.SQL, "sql/*.sql")
	require.NoError(t, err)
	last := int64(len(names))

	// Two deployments at once, of a database that has nothing.
	var both sync.WaitGroup
	answers, errs, start := make([]migrated, 2), make([]error, 2), make(chan struct{})
	for i := range answers {
		both.Go(func() {
			<-start
			answers[i], errs[i] = call(t, c.owner)
		})
	}
	close(start)
	both.Wait()
	require.NoError(t, errs[0])
	require.NoError(t, errs[1])
	if len(answers[0].Applied) == 0 {
		answers[0], answers[1] = answers[1], answers[0]
	}
	require.Equal(t, fmt.Sprintf("0 %d the database went from version 0 to %d", last, last), fmt.Sprint(answers[0].From, answers[0].To, " ", answers[0].Message))
	var applied []string
	for i, a := range answers[0].Applied {
		applied = append(applied, a.Name)
		require.NotNil(t, a.Milliseconds)
		require.Equal(t, path.Base(names[i]), a.Name)
	}
	require.Len(t, applied, len(names))
	nothing := migrated{From: last, To: last, Applied: answers[1].Applied, Message: fmt.Sprintf("the database is at version %d already: nothing was to be done", last)}
	require.Equal(t, nothing, answers[1])
	require.Empty(t, answers[1].Applied)

	// The roles that functions connect as sign in by IAM; nobody else does.
	var roles []string
	require.NoError(t, c.super.QueryRow(t.Context(), `select array_agg(rolname || ' ' || rolcanlogin || ' ' || pg_has_role(oid, 'rds_iam', 'member') || ' ' || rolsuper || rolbypassrls order by rolname)
		from pg_roles where rolname like 'agentplatform%'`).Scan(&roles))
	require.Equal(t, []string{"agentplatform_app true true falsefalse", "agentplatform_ledger true true falsefalse", "agentplatform_lookup false false falsefalse",
		"agentplatform_owner false false falsefalse", "agentplatform_reader true true falsefalse"}, roles)
	for _, role := range []string{"agentplatform_app", "agentplatform_ledger", "agentplatform_reader"} {
		_, err := c.super.Exec(t.Context(), `alter role `+role+` password '`+secret+`'`) // in the place of a token
		require.NoError(t, err)
		var user string
		require.NoError(t, connect(t, c.URL(role, secret, "agentplatform")).QueryRow(t.Context(), `select current_user`).Scan(&user))
		require.Equal(t, role, user)
	}

	// What was taken from a role comes back, and a database of a later release is left alone.
	_, err = c.super.Exec(t.Context(), `alter role agentplatform_reader nologin; revoke rds_iam from agentplatform_app`)
	require.NoError(t, err)
	again, err := call(t, c.owner)
	require.NoError(t, err)
	require.Equal(t, nothing.Message, again.Message)
	var whole bool
	require.NoError(t, c.super.QueryRow(t.Context(), `select rolcanlogin and pg_has_role('agentplatform_app', 'rds_iam', 'member') from pg_roles where rolname = 'agentplatform_reader'`).Scan(&whole))
	require.True(t, whole)
	_, err = connect(t, c.owner).Exec(t.Context(), `insert into schema_migrations (version, name, sha256) values (90001, '90001_later.sql', '')`)
	require.NoError(t, err)
	older, err := call(t, c.owner)
	require.NoError(t, err)
	require.Equal(t, []string{"90001_later.sql"}, older.Newer)
	require.Equal(t, "the database is at version 90001, which a later release made (90001_later.sql): nothing was changed, for that release's schema is compatible with this one", older.Message)
}

// On a server of one's own there is no IAM: roles have what the operator gives them.
func TestMigrateWithoutIAM(t *testing.T) {
	c := fresh(t)
	_, err := call(t, c.owner)
	require.NoError(t, err)
	var ready bool
	require.NoError(t, c.super.QueryRow(t.Context(), `select bool_and(rolcanlogin) from pg_roles where rolname in ('agentplatform_app', 'agentplatform_ledger', 'agentplatform_reader')`).Scan(&ready))
	require.True(t, ready)
}

func TestMigrateSaysWhyNot(t *testing.T) {
	db := pgtest.New(t)
	_, err := db.Superuser(t).Exec(t.Context(), `update schema_migrations set sha256 = '' where version = 1`)
	require.NoError(t, err)
	_, err = call(t, db.SuperURL)
	require.ErrorContains(t, err, "the migration 00001_platform.sql is not the one that was applied to this database on ")
	_, err = call(t, db.ReaderURL)
	require.ErrorContains(t, err, "the database could not be made ready: permission denied for table schema_migrations (SQLSTATE 42501)")
	require.PanicsWithValue(t, "DATABASE_OWNER_URL is not set", func() { // which Lambda makes the answer
		rows, err := manifest.Parse(schema.Routes)
		require.NoError(t, err)
		row, _ := rows.Row("migrate")
		_, _ = functions.Migrate(handler.NewEnv(row, &handler.Ports{Owner: func() postgres.Config { panic("DATABASE_OWNER_URL is not set") }})).Invoke(t.Context(), []byte(`null`))
	})
}

// A deployment with a knowledge base goes on where the server cannot have one, and says so.
func TestMigrateSaysWhetherTheKnowledgeBaseHasItsTable(t *testing.T) {
	db := pgtest.New(t)
	rows, err := manifest.Parse(schema.Routes)
	require.NoError(t, err)
	row, _ := rows.Row("migrate")
	ports := &handler.Ports{Owner: func() postgres.Config { return postgres.Config{URL: db.SuperURL} }, KnowledgePassword: func() string { return secret }}
	raw, err := functions.Migrate(handler.NewEnv(row, ports)).Invoke(t.Context(), []byte(`null`))
	require.NoError(t, err)
	var m migrated
	require.NoError(t, json.Unmarshal(raw, &m))
	require.Contains(t, m.Message, "nothing was to be done; the knowledge base has no table: the server has no extension vector")
	ports.KnowledgePassword = func() string { panic("DATABASE_KNOWLEDGE_SECRET_ID: secret x is away") } // which Lambda makes the answer
	require.Panics(t, func() { _, _ = functions.Migrate(handler.NewEnv(row, ports)).Invoke(t.Context(), []byte(`null`)) })
}
