package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/local/host"
	"github.com/agentplatform/agentplatform/pkg/manifest"
	"github.com/agentplatform/agentplatform/pkg/postgres/embedded"
	"github.com/agentplatform/agentplatform/pkg/postgres/migrate"
	"github.com/agentplatform/agentplatform/schema"
	"github.com/agentplatform/agentplatform/test/standin"
)

// world is what a deployment's functions run in: their programs, built for this machine, and a PostgreSQL in the place of the cluster, with the
// master user that RDS would have made. They have the environment that Terraform gave them, but for the database's addresses.
type world struct {
	aws    func() *standin.AWS
	server *embedded.Server
	host   *host.Host
	log    *os.File
	owner  string            // URL
	url    map[string]string // of each role that signs in
}

const (
	password = "rehearsal"
	database = "agentplatform"
	master   = "platform_admin" // as infra/data/database.tf names it
)

// roles by the settings that name them.
var roles = map[string]string{"DATABASE_URL": "agentplatform_app", "DATABASE_READER_URL": "agentplatform_reader", "DATABASE_LEDGER_URL": "agentplatform_ledger"}

func newWorld(ctx context.Context, root, dir string, aws func() *standin.AWS) (_ *world, err error) {
	w := &world{aws: aws, url: map[string]string{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.stop())
		}
	}()
	rows, err := manifest.Parse(schema.Routes)
	if err != nil {
		return nil, err
	}
	called := calledBy(rows)
	if err = build(ctx, root, filepath.Join(dir, "bin"), called); err != nil {
		return nil, err
	}
	if w.server, err = embedded.Start(ctx, embedded.Config{Dir: filepath.Join(dir, "postgres"), Password: password}); err != nil {
		return nil, err
	}
	for _, sql := range []string{`create role ` + master + ` login createrole password '` + password + `'`, `create database ` + database + ` owner ` + master} {
		if err = w.sql(ctx, w.server.URL(embedded.Superuser, password, embedded.Database), sql); err != nil {
			return nil, err
		}
	}
	w.owner = w.server.TCPURL(master, password, database)
	for setting, role := range roles {
		w.url[setting] = w.server.TCPURL(role, password, database)
	}
	if w.log, err = os.Create(filepath.Join(dir, "functions.log")); err != nil {
		return nil, err
	}
	w.host, err = host.New(host.Config{Dir: filepath.Join(dir, "bin"), Functions: host.Functions(manifest.Manifest{Rows: called}), Environment: w.environment,
		Prefix: prefix + "-", Region: region, Account: standin.Account, Log: slog.New(slog.NewTextHandler(w.log, nil))})
	return w, err
}

// calledBy are the functions that a deployment calls, and those that these call.
func calledBy(rows manifest.Manifest) (called []manifest.Row) {
	var add func(row manifest.Row)
	add = func(row manifest.Row) {
		if slices.ContainsFunc(called, func(c manifest.Row) bool { return c.Name == row.Name }) {
			return
		}
		called = append(called, row)
		for _, need := range row.Needs {
			if name, ok := strings.CutPrefix(need, "invoke:"); ok {
				if next, ok := rows.Row(name); ok {
					add(next)
				}
			}
		}
	}
	for _, row := range rows.Rows {
		if len(row.Triggers("deploy")) > 0 {
			add(row)
		}
	}
	return called
}

func build(ctx context.Context, root, to string, rows []manifest.Row) error {
	args := []string{"build", "-tags", "lambda.norpc", "-o", to + string(filepath.Separator)}
	for _, row := range rows {
		args = append(args, "./functions/"+row.Package+"/"+row.Name)
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

// environment is what Terraform gave a function, and where AWS and the database are.
func (w *world) environment(name string) []string {
	env := []string{"AWS_ENDPOINT_URL=" + w.aws().URL, "AWS_ACCESS_KEY_ID=none", "AWS_SECRET_ACCESS_KEY=none", "AWS_XRAY_SDK_DISABLED=TRUE"}
	given, err := w.aws().Environment(context.Background(), region, prefix+"-"+name)
	if err != nil {
		slog.Error("a function has no environment", "function", name, "error", err)
	}
	for setting, value := range given {
		switch {
		case setting == "DATABASE_AUTH": // by password: nobody here takes a token of IAM
		case setting == "DATABASE_OWNER_SECRET_ID":
			env = append(env, "DATABASE_OWNER_URL="+w.owner)
		case w.url[setting] != "":
			env = append(env, setting+"="+w.url[setting])
		default:
			env = append(env, setting+"="+value)
		}
	}
	return env
}

// invocations answers Lambda's Invoke by the functions' programs.
func (w *world) invocations() http.Handler {
	return &host.API{Prefix: prefix + "-", Invoke: func(ctx context.Context, name string, payload []byte) ([]byte, error) {
		answer, err := w.host.Invoke(ctx, name, payload)
		if err != nil || name != "migrate" {
			return answer, err
		}
		// On RDS the roles that it makes sign in by IAM.
		passwords := map[string]string{}
		for _, role := range roles {
			passwords[role] = password
		}
		return answer, migrate.SetPasswords(ctx, w.owner, passwords)
	}}
}

// tenants are those in the database, in words.
func (w *world) tenants(ctx context.Context) (text string, err error) {
	conn, err := pgx.Connect(ctx, w.server.URL(embedded.Superuser, password, database))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	return text, conn.QueryRow(ctx, `select format('%s tables by migrations; tenants: %s; users: %s',
		(select count(*) from pg_tables where schemaname = 'public'),
		coalesce((select string_agg(slug, ', ') from tenants), 'none'), coalesce((select string_agg(email, ', ') from users), 'none'))`).Scan(&text)
}

func (w *world) sql(ctx context.Context, url, text string) (err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	_, err = conn.Exec(ctx, text)
	return err
}

func (w *world) stop() error {
	var errs []error
	if w.host != nil {
		w.host.Stop()
	}
	if w.server != nil {
		errs = append(errs, w.server.Stop(context.Background()))
	}
	if w.log != nil {
		errs = append(errs, w.log.Close())
	}
	return errors.Join(errs...)
}
