package clock

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// versions are the steps to the tables as they are now, each run once. A step is never edited: the next one follows it.
var versions = []string{
	`create table local_clock.schedules (
		name       text collate "C" primary key,
		expression text not null,
		time_zone  text not null,
		start_at   timestamptz,
		end_at     timestamptz,
		enabled    boolean not null,
		input      text not null,        -- JSON, as it was put
		made       timestamptz not null, -- what a rate without a start is counted from
		occurrence timestamptz,          -- the next, or the one that is being delivered; null: none
		wake       timestamptz,          -- when to look at it: the occurrence, or when its claim ends, or when it is tried again; null: never
		attempts   integer not null default 0, -- deliveries of the occurrence
		claim      bigint not null default 0   -- counts claims: who has an older one has none
	);
	create index schedules_wake on local_clock.schedules (wake) where wake is not null`,
}

// prepare brings the schema up to date. Of several that do so at once, one does it.
func prepare(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('local_clock', 0))`); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `set local client_min_messages = warning; create schema if not exists local_clock;
		create table if not exists local_clock.version (version integer not null)`); err != nil {
		return err
	}
	var version int
	if err := tx.QueryRow(ctx, `select coalesce(max(version), 0) from local_clock.version`).Scan(&version); err != nil {
		return err
	}
	if version > len(versions) {
		return fmt.Errorf("they are of version %d, made by a newer release; this one knows up to %d", version, len(versions))
	}
	for n, step := range versions[version:] {
		if _, err := tx.Exec(ctx, step); err != nil {
			return fmt.Errorf("version %d: %w", version+n+1, err)
		}
		if _, err := tx.Exec(ctx, `insert into local_clock.version values ($1)`, version+n+1); err != nil {
			return err
		}
	}
	return nil
}
