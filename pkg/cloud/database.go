package cloud

import (
	"context"
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/feature/rds/auth"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/postgres"
)

// DB is PostgreSQL as the application role, for the need db.
func DB(a *Account, p *handler.Ports) { p.DB = a.database("DATABASE_URL", a.DatabaseURL) }

// Reader is PostgreSQL as the compliance reader, for db:reader.
func Reader(a *Account, p *handler.Ports) {
	p.Reader = a.database("DATABASE_READER_URL", a.DatabaseReaderURL)
}

// Ledger is PostgreSQL as the ledger's one writer, for db:ledger.
func Ledger(a *Account, p *handler.Ports) {
	p.Ledger = a.database("DATABASE_LEDGER_URL", a.DatabaseLedgerURL)
}

func (a *Account) database(name, url string) func() *postgres.DB {
	return sync.OnceValue(func() *postgres.DB {
		config := postgres.Config{URL: Required(name, url), MaxConns: a.DatabaseConns}
		switch a.DatabaseAuth {
		case "", "password":
		case "iam":
			config.Password = a.Token()
		default:
			panic(fmt.Sprintf("DATABASE_AUTH=%s is not a way to authenticate: use iam or password", a.DatabaseAuth))
		}
		db, err := postgres.Open(a.ctx, config)
		if err != nil {
			panic(fmt.Errorf("%s, DATABASE_AUTH=%s: %w", name, a.DatabaseAuth, err))
		}
		return db
	})
}

// Token makes passwords of IAM database authentication: each is a signed request to connect as the role, good for 15 minutes. Nobody is asked but
// whoever gives the credentials; the database checks that they have rds-db:connect for the role.
func (a *Account) Token() func(ctx context.Context, server, role string) (string, error) {
	credentials := a.AWS().Credentials
	return func(ctx context.Context, server, role string) (string, error) {
		return auth.BuildAuthToken(ctx, server, a.Region, role, credentials)
	}
}
