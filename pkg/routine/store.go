package routine

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
)

// columns are of routines r; the definition follows, or null.
const columns = `r.id, r.name, r.description, r.current_version, r.created_by, r.created_at, r.updated_at`

func scan(row pgx.CollectableRow) (r Routine, err error) {
	err = row.Scan(&r.ID, &r.Name, &r.Description, &r.CurrentVersion, &r.CreatedBy, &r.CreatedAt, &r.UpdatedAt, &r.Version, &r.Definition)
	return r, err
}

// Cursor is the sort key of the list of routines: a name is there once.
type Cursor struct{ Name string }

// Cursor is r's place in the list.
func (r Routine) Cursor() Cursor { return Cursor{r.Name} }

// List is up to limit routines by name, after the cursor, without their definitions.
func List(ctx context.Context, q postgres.Querier, after *Cursor, limit int) ([]Routine, error) {
	var name *string
	if after != nil {
		name = &after.Name
	}
	return postgres.All(ctx, q, scan, `select `+columns+`, r.current_version, null from routines r
		where r.deleted_at is null and ($1::text is null or r.name > $1) order by r.name limit $2`, name, limit)
}

// Get is one routine with the definition of one of its versions; nil is the current one.
func Get(ctx context.Context, q postgres.Querier, id string, version *int) (Routine, error) {
	if !ident.Valid(id) {
		return Routine{}, fault.Missing("routine")
	}
	return postgres.One(ctx, q, "routine", scan, `select `+columns+`, v.version, v.definition
		from routines r join routine_versions v on v.tenant_id = r.tenant_id and v.routine_id = r.id and v.version = coalesce($2, r.current_version)
		where r.id = $1 and r.deleted_at is null`, id, version)
}

// VersionCursor is the sort key of a routine's versions.
type VersionCursor struct{ Version int }

// Cursor is v's place in the list.
func (v Version) Cursor() VersionCursor { return VersionCursor{v.Version} }

type versionOf struct {
	routineID string
	Version
}

// Versions are up to limit versions of each routine after the cursor, newest first, in one query, by the routine's id.
func Versions(ctx context.Context, q postgres.Querier, routines []string, after *VersionCursor, limit int) (map[string][]Version, error) {
	before := 1<<31 - 1
	if after != nil {
		before = after.Version
	}
	all, err := postgres.All(ctx, q, func(row pgx.CollectableRow) (v versionOf, err error) {
		err = row.Scan(&v.routineID, &v.Version.Version, &v.Status, &v.Refusal, &v.CreatedBy, &v.CreatedAt)
		return v, err
	}, `select i.id, v.version, v.status, v.refusal, v.created_by, v.created_at from unnest($1::uuid[]) i (id) cross join lateral (
			select * from routine_versions v where v.routine_id = i.id and v.version < $2 order by v.version desc limit $3) v
		order by i.id, v.version desc`, routines, before, limit)
	found := make(map[string][]Version, len(routines))
	for _, v := range all {
		found[v.routineID] = append(found[v.routineID], v.Version)
	}
	return found, err
}

// Create makes a routine, and its first version. Whoever commits must then have the engine Prepare it.
func Create(ctx context.Context, tx pgx.Tx, tenantID, userID string, f Fields) (Routine, error) {
	r := Routine{ID: ident.New(), CurrentVersion: 1, Version: 1, CreatedBy: userID, CreatedAt: ident.Now()}
	r.UpdatedAt = r.CreatedAt
	if !f.Name.Set || !f.Definition.Set {
		return r, fault.Invalid("name and definition are required")
	}
	if err := f.apply(&r); err != nil {
		return r, err
	}
	if err := Check(ctx, tx, r.Name, *r.Definition); err != nil {
		return r, err
	}
	if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('routines ' || $1, 0))`, tenantID); err != nil { // so that they are counted exactly
		return r, err
	}
	var count int
	if err := tx.QueryRow(ctx, `select count(*) from routines where deleted_at is null`).Scan(&count); err != nil {
		return r, err
	}
	if count >= MaxRoutines {
		return r, fault.Invalid("there are %d routines, and no more may be", count)
	}
	var b pgx.Batch
	b.Queue(`insert into routines (tenant_id, id, name, description, current_version, last_version, created_by, created_at, updated_at) values ($1, $2, $3, $4, 1, 1, $5, $6, $6)`,
		tenantID, r.ID, r.Name, r.Description, userID, r.CreatedAt)
	insertVersion(&b, tenantID, r, userID)
	return r, named(r.Name, tx.SendBatch(ctx, &b).Close())
}

// Update changes the given fields. Another definition is a new version, which runs that go on do not see; whoever commits must then have the engine
// Prepare it.
func Update(ctx context.Context, tx pgx.Tx, tenantID, userID, id string, f Fields) (Routine, error) {
	if _, err := Get(ctx, tx, id, nil); err != nil { // the lock needs a row
		return Routine{}, err
	}
	var last int
	if err := tx.QueryRow(ctx, `select last_version from routines where id = $1 for no key update`, id).Scan(&last); err != nil {
		return Routine{}, err
	}
	r, err := Get(ctx, tx, id, nil)
	if err != nil {
		return r, err
	}
	was := *r.Definition
	if err := f.apply(&r); err != nil {
		return r, err
	}
	r.UpdatedAt = ident.Now()
	var b pgx.Batch
	if *r.Definition != was {
		if err := Check(ctx, tx, r.Name, *r.Definition); err != nil {
			return r, err
		}
		last++
		r.CurrentVersion, r.Version = last, last
		insertVersion(&b, tenantID, r, userID)
		// The oldest that no run needs: one that has no machine, or never had one.
		b.Queue(`delete from routine_versions where routine_id = $1 and version <= $2 and status in ('gone', 'refused')`, r.ID, last-MaxVersions)
	}
	b.Queue(`update routines set name = $2, description = $3, current_version = $4, last_version = $5, updated_at = $6 where id = $1`,
		r.ID, r.Name, r.Description, r.CurrentVersion, last, r.UpdatedAt)
	return r, named(r.Name, tx.SendBatch(ctx, &b).Close())
}

// Delete takes a routine away: nobody starts it any more. Runs that go on go on to their end, and can still be read. The answer is what it was.
func Delete(ctx context.Context, tx pgx.Tx, id string) (Routine, error) {
	r, err := Get(ctx, tx, id, nil)
	if err != nil {
		return r, err
	}
	tag, err := tx.Exec(ctx, `update routines set deleted_at = clock_timestamp() where id = $1 and deleted_at is null`, id)
	if err != nil {
		return r, err
	}
	if tag.RowsAffected() == 0 { // somebody else was faster
		return r, fault.Missing("routine")
	}
	_, err = tx.Exec(ctx, `update routine_versions set retire_after = clock_timestamp() where routine_id = $1 and status in ('waiting', 'ready')`, id)
	return r, err
}

func insertVersion(b *pgx.Batch, tenantID string, r Routine, userID string) {
	b.Queue(`insert into routine_versions (tenant_id, routine_id, version, definition, created_by, created_at) values ($1, $2, $3, $4, $5, $6)`,
		tenantID, r.ID, r.Version, *r.Definition, userID, r.UpdatedAt)
}

// named says whose the name is.
func named(name string, err error) error {
	if postgres.IsUnique(err, "routines_by_name") {
		return fault.Invalid("there is a routine of the name %q", name)
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return fault.Missing("routine")
	}
	return err
}
