// Package postgres is how everything durable is reached: a pool, and transactions that are bound to one tenant.
//
// What holds:
//   - There is no query outside a transaction, and no tenant's row is seen outside InTenant: the policies of schema/sql compare
//     tenant_id with the setting app.tenant_id, which is local to the transaction and gone with it. Unset, there are zero rows.
//   - A transaction either commits as a whole or leaves nothing: an error, a panic or a cancelled context rolls it back.
//   - A transaction that lost to a concurrent one (serialization failure, deadlock) is run again from its start, so what is
//     run must not have effects outside the transaction.
//
// One transaction with one query is three round trips: begin with the tenant, the query, commit.
package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Config says which database to use, and with how many connections.
type Config struct {
	// URL is a connection URL or key=value string, with the application's role and its credential. Required.
	URL string
	// MaxConns bounds the pool. Default 4: a Lambda instance answers one request at a time, and only GraphQL runs
	// siblings in parallel. One process that serves everything wants more, below the server's max_connections.
	MaxConns int
	// ConnectTimeout is how long one connection may take. Default 5 s.
	ConnectTimeout time.Duration
	// Name is shown in pg_stat_activity. Default "agentplatform".
	Name string
}

// DB is a pool of connections of one role. It is safe for concurrent use.
type DB struct{ pool *pgxpool.Pool }

// Open makes the pool. It does not wait for a connection: the first transaction does, or Ping.
func Open(ctx context.Context, config Config) (*DB, error) {
	c, err := pgxpool.ParseConfig(config.URL)
	if err != nil {
		return nil, errors.New("postgres: the connection URL cannot be parsed") // pgx's error quotes it, with the password
	}
	c.MaxConns = int32(cmp.Or(config.MaxConns, 4))
	c.ConnConfig.ConnectTimeout = cmp.Or(config.ConnectTimeout, 5*time.Second)
	c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement
	c.ConnConfig.RuntimeParams["application_name"] = cmp.Or(config.Name, "agentplatform")
	// A function instance that is frozen in a transaction does not hold its locks for ever: the server ends it.
	c.ConnConfig.RuntimeParams["idle_in_transaction_session_timeout"] = "2min"
	c.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		// Times come back in UTC, whatever the machine's zone is.
		conn.TypeMap().RegisterType(&pgtype.Type{
			Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC},
		})
		return nil
	}
	pool, err := pgxpool.NewWithConfig(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	return &DB{pool: pool}, nil
}

// Ping reports whether the database answers.
func (db *DB) Ping(ctx context.Context) error { return db.pool.Ping(ctx) }

// Close waits for running transactions and closes all connections.
func (db *DB) Close() { db.pool.Close() }
