package postgres

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/ident"
)

const (
	attempts        = 6                    // runs of a transaction that keeps losing
	firstPause      = 2 * time.Millisecond // before the second run, doubled for each later one, with jitter
	rollbackTimeout = 5 * time.Second      // a rollback outlives its request's context
)

// ErrNoTenant refuses a transaction for a tenant id that is no UUID.
var ErrNoTenant = errors.New("postgres: no transaction without a tenant id")

// InTenant runs run in one transaction that sees and writes the rows of this tenant only, and commits it.
//
// run is called again, in a new transaction, when the database chose this one to give way to a concurrent one. tenantID is a
// UUID in its text form; anything else is ErrNoTenant, and nothing is run.
func (db *DB) InTenant(ctx context.Context, tenantID string, run func(tx pgx.Tx) error) error {
	return db.bound(ctx, "begin; ", tenantID, run)
}

// InTenantRelaxed is InTenant for work whose loss in a power cut is harmless, such as deleting what was already delivered: the
// commit does not wait for the disk. The transaction is as atomic and as isolated as any.
func (db *DB) InTenantRelaxed(ctx context.Context, tenantID string, run func(tx pgx.Tx) error) error {
	return db.bound(ctx, "begin; set local synchronous_commit = off; ", tenantID, run)
}

// Unbound runs run in a transaction of no tenant: every table is empty to it. It is for the lookup functions of schema/sql, which
// answer "whose is this?" before there is a tenant, and for roles whose policies span tenants (the ledger's, the reader's).
func (db *DB) Unbound(ctx context.Context, run func(tx pgx.Tx) error) error {
	return db.retry(ctx, "begin", run)
}

func (db *DB) bound(ctx context.Context, begin, tenantID string, run func(tx pgx.Tx) error) error {
	if !ident.Valid(tenantID) { // also what makes it safe to put into the text of a statement
		return ErrNoTenant
	}
	// In the text, so that one round trip begins the transaction and binds it: a statement with arguments travels alone.
	return db.retry(ctx, begin+"set local app.tenant_id = '"+tenantID+"'", run)
}

func (db *DB) retry(ctx context.Context, begin string, run func(tx pgx.Tx) error) error {
	return again(ctx, func() error { return db.once(ctx, begin, run) })
}

// again runs a transaction until it did not lose to a concurrent one.
func again(ctx context.Context, transaction func() error) error {
	pause := firstPause
	for attempt := 1; ; attempt++ {
		err := transaction()
		if err == nil || attempt == attempts || ctx.Err() != nil || !lost(err) {
			return readable(err)
		}
		timer := time.NewTimer(pause/2 + rand.N(pause))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
		pause *= 2
	}
}

func (db *DB) once(ctx context.Context, begin string, run func(tx pgx.Tx) error) error {
	tx, err := db.pool.BeginTx(ctx, pgx.TxOptions{BeginQuery: begin})
	if err != nil {
		return &beginError{err}
	}
	done := false
	defer func() { // after an error and in a panic alike
		if !done {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
			defer cancel()
			_ = tx.Rollback(ctx) // a connection that cannot roll back is closed, which does
		}
	}()
	if err := run(tx); err != nil {
		return err
	}
	err = tx.Commit(ctx)
	done = err == nil
	return err
}

// beginError marks a transaction that never began.
type beginError struct{ error }

func (e *beginError) Unwrap() error { return e.error }
