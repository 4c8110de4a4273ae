// Package space holds spaces and the files that govern their agents.
//
// A governance file is its versions: each edit adds one, numbered from 1 without gaps, and none ever changes. The newest counts; an empty one
// says that there is no such file any more.
package space

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
)

// CreateDefault gives the tenant its default space, with its default agent; without an id it takes a new one.
func CreateDefault(ctx context.Context, tx pgx.Tx, tenantID, id, agentID string) error {
	if id == "" {
		id = ident.New()
	}
	_, err := tx.Exec(ctx, `insert into spaces (tenant_id, id, name, default_agent_id, is_default) values ($1, $2, 'Default', $3, true)`, tenantID, id, agentID)
	return err
}

// lock is the id of the space, or of the default one, and nobody else edits its files until tx ends. It does not hinder new threads.
func lock(ctx context.Context, tx pgx.Tx, chosen *string) (id string, err error) {
	switch {
	case chosen == nil:
		err = tx.QueryRow(ctx, `select id from spaces where is_default for no key update`).Scan(&id)
	case ident.Valid(*chosen):
		err = tx.QueryRow(ctx, `select id from spaces where id = $1 for no key update`, *chosen).Scan(&id)
	default:
		err = pgx.ErrNoRows
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return "", fault.Missing("space")
	}
	return id, err
}
