package migrate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// applied is a row of schema_migrations: a migration that this database has.
type applied struct {
	version      int64
	name, sha256 string
	at           time.Time
}

// history is what was applied, by version. The table is made when it is missing. A database from before it was kept by goose, in a table
// without checksums: its versions count as applied with the files as they are now.
func history(ctx context.Context, conn *pgx.Conn, files []migration) (all []applied, err error) {
	var there, goose bool
	err = conn.QueryRow(ctx, `select to_regclass('public.schema_migrations') is not null, to_regclass('public.goose_db_version') is not null`).Scan(&there, &goose)
	if err != nil {
		return nil, err
	}
	if !there {
		err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `create table public.schema_migrations (
				version    bigint primary key,
				name       text not null,
				sha256     text not null,
				applied_at timestamptz not null default clock_timestamp()
			)`)
			for _, m := range files {
				if err == nil && goose {
					_, err = tx.Exec(ctx, `insert into public.schema_migrations (version, name, sha256)
						select $1, $2, $3 where exists (select from public.goose_db_version where version_id = $1 and is_applied)`, m.version, m.name, m.sha256)
				}
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	rows, err := conn.Query(ctx, `select version, name, sha256, applied_at from public.schema_migrations order by version`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (a applied, err error) {
		return a, row.Scan(&a.version, &a.name, &a.sha256, &a.at)
	})
}

// compare gives the files that the database lacks, and what it has that a later release brought. It has all files up to some number, each as it is
// here; anything else is refused.
func compare(files []migration, have []applied) (missing []migration, later []applied, err error) {
	known := map[int64]migration{}
	for _, m := range files {
		known[m.version] = m
	}
	last := files[len(files)-1]
	done := map[int64]bool{}
	var highest int64
	for _, a := range have {
		m, ok := known[a.version]
		switch {
		case !ok && a.version > last.version:
			later = append(later, a)
		case !ok:
			return nil, nil, fmt.Errorf("the database has the migration %s, which this release lacks although it has the later %s: they were not made from one history. "+
				"Nothing was changed", a.name, last.name)
		case m.name != a.name || m.sha256 != a.sha256:
			return nil, nil, fmt.Errorf("the migration %s is not the one that was applied to this database on %s as %s: what was applied is never edited. "+
				"Nothing was changed. Restore the file as it was released, and put the change into a new migration", m.name, a.at.UTC().Format(time.DateTime), a.name)
		}
		done[a.version], highest = true, a.version
	}
	for _, m := range files {
		if done[m.version] {
			continue
		}
		if m.version < highest {
			return nil, nil, fmt.Errorf("the database lacks the migration %s but has later ones (up to number %d): they were not made from one history. Nothing was changed. "+
				"Give the file the next free number", m.name, highest)
		}
		missing = append(missing, m)
	}
	return missing, later, nil
}

// lockID is the advisory lock of migrations: the bytes "agentpla" of the product's name.
const lockID int64 = 0x6167656e74706c61

// lock waits for other processes that migrate this database, no longer than limit. It polls instead of waiting in the database: a waiting statement
// holds a snapshot, which blocks concurrent index builds. The lock ends with the connection.
func lock(ctx context.Context, conn *pgx.Conn, limit time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errBusy)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		var taken bool
		err := conn.QueryRow(ctx, "select pg_try_advisory_lock($1)", lockID).Scan(&taken)
		if err == nil && taken {
			return nil
		}
		if err == nil {
			select {
			case <-tick.C:
				continue
			case <-ctx.Done():
			}
		}
		if errors.Is(context.Cause(ctx), errBusy) {
			return fmt.Errorf("another process migrates this database and was not done after %v. Nothing was changed. Deploy again when it is done", limit)
		}
		if err == nil {
			err = ctx.Err()
		}
		return err
	}
}

var errBusy = errors.New("another process migrates")
