package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Grow brings a schema that one package has to itself up to date, in tx: it makes the schema when it is not there, and runs those of the steps that have
// not been run. A step is never edited: the next one follows it. Of several that do so at once, one does it. A schema that a newer release has made is
// an error.
func Grow(ctx context.Context, tx pgx.Tx, schema string, steps []string) error {
	if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended($1, 0))`, schema); err != nil {
		return err
	}
	name, table := pgx.Identifier{schema}.Sanitize(), pgx.Identifier{schema, "version"}.Sanitize()
	if _, err := tx.Exec(ctx, `set local client_min_messages = warning; create schema if not exists `+name+`;
		create table if not exists `+table+` (version integer not null)`); err != nil {
		return err
	}
	var version int
	if err := tx.QueryRow(ctx, `select coalesce(max(version), 0) from `+table).Scan(&version); err != nil {
		return err
	}
	if version > len(steps) {
		return fmt.Errorf("they are of version %d, made by a newer release; this one knows up to %d", version, len(steps))
	}
	for n, step := range steps[version:] {
		if _, err := tx.Exec(ctx, step); err != nil {
			return fmt.Errorf("version %d: %w", version+n+1, err)
		}
		if _, err := tx.Exec(ctx, `insert into `+table+` values ($1)`, version+n+1); err != nil {
			return err
		}
	}
	return nil
}
