package callback

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/postgres"
)

// Waits reports whether a callback is there and nothing is to be told by it yet, and keeps it so until tx ends. One that is not there any more has been
// told, or the engine has said that the task is over.
func Waits(ctx context.Context, tx pgx.Tx, id string) (bool, error) {
	if id == "" {
		return false, nil
	}
	found, err := postgres.All(ctx, tx, pgx.RowTo[bool], `select due_at is null from callbacks where id = $1 for update`, id)
	return err == nil && len(found) == 1 && found[0], err
}
