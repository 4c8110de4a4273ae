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
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

// DB is a pool of connections of one role. It is safe for concurrent use.
type DB struct{ pool *pgxpool.Pool }

// Open makes the pool. It does not wait for a connection: the first transaction does, or Ping.
func Open(ctx context.Context, config Config) (*DB, error) {
	c, err := config.pool()
	if err != nil {
		return nil, err
	}
	c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement
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
