package workflow

import (
	"context"
	"crypto/rand"
	_ "embed"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/postgres"
)

//go:embed tables/1.sql
var first string

// versions are the steps to the tables and functions as they are now: see postgres.Grow.
var versions = []string{first}

// prepare brings the schema up to date, and returns what tokens are signed with.
func prepare(ctx context.Context, tx pgx.Tx) (secret []byte, err error) {
	if err := postgres.Grow(ctx, tx, "local_workflow", versions); err != nil {
		return nil, err
	}
	fresh := make([]byte, 32)
	_, _ = rand.Read(fresh) // never fails
	if _, err := tx.Exec(ctx, `insert into local_workflow.secret select $1 where not exists (select from local_workflow.secret)`, fresh); err != nil {
		return nil, err
	}
	err = tx.QueryRow(ctx, `select key from local_workflow.secret`).Scan(&secret)
	return secret, err
}
