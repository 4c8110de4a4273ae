package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/ident"
)

// Querier is what reading needs: a transaction's, or a tenant's (DB.In).
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// bind is the first statement of every batch of a tenant: a batch is one transaction, so it holds for the statements after it.
const bind = `select set_config('app.tenant_id', $1, true)`

// Once runs the queued statements in one transaction of the tenant and in one round trip.
//
// The statements travel together, so none can depend on what an earlier one answered: a callback's error (pgx.QueuedQuery) comes too late
// to undo anything. What must stop the transaction has to fail in the database.
func (db *DB) Once(ctx context.Context, tenantID string, b *pgx.Batch) error {
	return db.send(ctx, tenantID, b, false)
}

// OnceRelaxed is Once with the guarantee of InTenantRelaxed.
func (db *DB) OnceRelaxed(ctx context.Context, tenantID string, b *pgx.Batch) error {
	return db.send(ctx, tenantID, b, true)
}

func (db *DB) send(ctx context.Context, tenantID string, b *pgx.Batch, relaxed bool) error {
	if !ident.Valid(tenantID) {
		return ErrNoTenant
	}
	return again(ctx, func() error {
		var bound pgx.Batch
		bound.Queue(bind, tenantID)
		if relaxed {
			bound.Queue(`select set_config('synchronous_commit', 'off', true)`)
		}
		// Copies: sending notes in a queued query that its statement is prepared, on a connection that the next attempt may not get.
		for _, q := range b.QueuedQueries {
			bound.QueuedQueries = append(bound.QueuedQueries, &pgx.QueuedQuery{SQL: q.SQL, Arguments: q.Arguments, Fn: q.Fn})
		}
		return db.pool.SendBatch(ctx, &bound).Close()
	})
}

// In is the tenant's Querier for reading: each query is a transaction of its own, in one round trip.
func (db *DB) In(tenantID string) Querier { return reader{db, tenantID} }

// Lookup is Unbound for one question to a lookup function, in one round trip and not asked again.
func (db *DB) Lookup() Querier { return db.pool }

type reader struct {
	db       *DB
	tenantID string
}

func (r reader) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if !ident.Valid(r.tenantID) {
		return nil, ErrNoTenant
	}
	var b pgx.Batch
	b.Queue(bind, r.tenantID)
	b.Queue(sql, args...)
	results := r.db.pool.SendBatch(ctx, &b)
	if _, err := results.Exec(); err != nil {
		_ = results.Close() // reports the same error
		return nil, readable(err)
	}
	rows, err := results.Query()
	if err != nil {
		_ = results.Close()
		return nil, readable(err)
	}
	return &batchRows{rows, results}, nil
}

// batchRows gives the connection back when its rows are read.
type batchRows struct {
	pgx.Rows
	results pgx.BatchResults
}

func (r *batchRows) Next() bool {
	if r.Rows.Next() {
		return true
	}
	r.Close()
	return false
}

func (r *batchRows) Close() {
	r.Rows.Close()
	_ = r.results.Close() // the rows' own error says it all
}
