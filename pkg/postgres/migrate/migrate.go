// Package migrate brings a database to the schema of the migrations it is given, and gives its roles their credentials.
//
// What holds:
//   - Migrations only go forward, each once, each as a whole: one transaction has the file's statements and its row in the table
//     schema_migrations. A process that dies in between leaves whole migrations, and the next one goes on from there.
//   - Among processes that migrate at once, one does and the others wait, by an advisory lock that ends with its holder's connection.
//   - What was applied is never edited: the table has each file's SHA-256, and another file of that number is refused before anything is done.
//   - A database that a later release has migrated is left as it is. That release's migrations are compatible with this one's code, so that code
//     can be rolled back.
//   - A migration does not stop traffic: one that cannot have its lock soon gives up, and leaves nothing.
//   - Errors are sentences for whoever deploys: which file and line, what PostgreSQL says, what is left, what to do. They hold no password, no
//     connection URL and no row.
package migrate

import (
	"cmp"
	"context"
	"io/fs"
	"net"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/postgres"
)

// Config says what to apply, and how patiently.
type Config struct {
	// Files has the migrations, named <number>_<name>.sql, at its root or in a folder sql. Required.
	Files fs.FS
	// Lock is how long a statement waits for a lock that running transactions hold, while others queue up behind it. Default 10 s.
	Lock time.Duration
	// Statement is how long one statement may run. Default 10 minutes.
	Statement time.Duration
	// Wait is how long to wait for another process that migrates the database. Default 5 minutes.
	Wait time.Duration
	// Cloud also makes what only a database of the cloud's needs: extensions, and roles that sign in. See cloud.go.
	Cloud bool
	// Knowledge is the password of the managed knowledge base, for which its role and table are made; empty: there is no knowledge base. It is set each
	// time, so that a new one is good from then on. See knowledge.go.
	Knowledge string
}

// Report is what was done. Versions are numbers of migrations, 0 before the first.
type Report struct {
	From    int64     `json:"from"`
	To      int64     `json:"to"`
	Applied []Applied `json:"applied"`
	Newer   []string  `json:"newer,omitempty"` // migrations of a later release, which the database has
	// Knowledge says of the managed knowledge base, where there is one, whether it has its table: KnowledgeReady or KnowledgeNoVectors.
	Knowledge string `json:"knowledge,omitempty"`
}

const (
	KnowledgeReady     = "ready"
	KnowledgeNoVectors = "the server has no extension vector"
)

// Applied is one migration that was.
type Applied struct {
	Name         string `json:"name"`
	Milliseconds int64  `json:"milliseconds"`
}

// Up applies what is missing, patiently. ownerURL connects as a superuser (local mode) or as a role that may create roles; the files hand the
// objects to agentplatform_owner themselves.
func Up(ctx context.Context, ownerURL string, files fs.FS) error {
	_, err := Run(ctx, postgres.Config{URL: ownerURL}, Config{Files: files})
	return err
}

// Run applies what is missing. The database's role is as Up's. What was applied before an error stays, and is in the report.
func Run(ctx context.Context, database postgres.Config, c Config) (Report, error) {
	c.Lock, c.Statement, c.Wait = cmp.Or(c.Lock, 10*time.Second), cmp.Or(c.Statement, 10*time.Minute), cmp.Or(c.Wait, 5*time.Minute)
	files, err := read(c.Files)
	if err != nil {
		return Report{}, err
	}
	conn, err := connect(ctx, database)
	if err != nil {
		return Report{}, err
	}
	defer func() { // which also gives the lock back
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = conn.Close(ctx)
	}()
	report, err := c.run(ctx, conn, files)
	if err != nil {
		return report, explained(ctx, err)
	}
	return report, nil
}

func (c Config) run(ctx context.Context, conn *pgx.Conn, files []migration) (Report, error) {
	if err := lock(ctx, conn, c.Wait); err != nil {
		return Report{}, err
	}
	have, err := history(ctx, conn, files)
	if err != nil {
		return Report{}, err
	}
	missing, later, err := compare(files, have)
	report := Report{Applied: []Applied{}}
	if len(have) > 0 {
		report.From = have[len(have)-1].version
		report.To = report.From
	}
	if err != nil {
		return report, err
	}
	if len(later) > 0 {
		for _, a := range later {
			report.Newer = append(report.Newer, a.name)
		}
		return report, nil
	}
	if c.Cloud {
		if err := c.transaction(ctx, conn, extensions); err != nil {
			return report, err
		}
	}
	for _, m := range missing {
		began := time.Now()
		if err := c.apply(ctx, conn, m); err != nil {
			return report, failed(ctx, c, m, report.To, err)
		}
		report.To = m.version
		report.Applied = append(report.Applied, Applied{m.name, time.Since(began).Milliseconds()})
	}
	if c.Cloud {
		if err := c.transaction(ctx, conn, signIn); err != nil {
			return report, err
		}
	}
	if c.Knowledge == "" {
		return report, nil
	}
	ready, err := c.knowledge(ctx, conn)
	switch {
	case err != nil:
		return report, err
	case ready:
		report.Knowledge = KnowledgeReady
	default:
		report.Knowledge = KnowledgeNoVectors
	}
	return report, nil
}

// connect is the one connection that everything is done on: by the URL's password, and where that is refused, by one that database.Password makes. RDS
// takes a token of IAM and no password from a role that it counts among the members of rds_iam, and PostgreSQL 16 makes whoever creates a role a
// member of it.
func connect(ctx context.Context, database postgres.Config) (*pgx.Conn, error) {
	token := database.Password
	database.Password = nil
	database.ConnectTimeout = cmp.Or(database.ConnectTimeout, time.Minute) // a serverless database may have to wake up
	database.Name = cmp.Or(database.Name, "agentplatform-migrate")
	config, err := database.Connection()
	if err != nil {
		return nil, err
	}
	// A process that is gone without a word holds its locks no longer than this.
	config.RuntimeParams["idle_in_transaction_session_timeout"], config.RuntimeParams["idle_session_timeout"] = "1min", "1min"
	conn, err := pgx.ConnectConfig(ctx, config)
	if token == nil || !refused(err) {
		return conn, unreachable(err, config)
	}
	if config.Password, err = token(ctx, net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port))), config.User); err != nil {
		return nil, unreachable(err, config)
	}
	conn, err = pgx.ConnectConfig(ctx, config)
	return conn, unreachable(err, config)
}

// refused reports whether the server did not accept who asked.
func refused(err error) bool {
	pg := postgresError(err)
	return pg != nil && (pg.Code == "28P01" || pg.Code == "28000") // invalid_password, invalid_authorization_specification
}
