package schedule

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
)

const scheduleColumns = `id, name, agent_id, routine_id, prompt, input::text, title, metadata::text, expression, time_zone, start_at, end_at, enabled, missed, loop,
	last_occurrence, created_by, created_at, updated_at, since, revision, put_revision, deleted_at is not null`

func scanSchedule(row pgx.CollectableRow) (Schedule, error) {
	var s Schedule
	err := row.Scan(&s.ID, &s.Name, &s.AgentID, &s.RoutineID, &s.Prompt, &s.Input, &s.Title, &s.Metadata, &s.Expression, &s.TimeZone, &s.StartAt, &s.EndAt, &s.Enabled,
		&s.Missed, &s.Loop, &s.LastOccurrence, &s.CreatedBy, &s.CreatedAt, &s.UpdatedAt, &s.since, &s.revision, &s.putRevision, &s.deleted)
	s.Settled = s.putRevision == s.revision
	s.next(time.Now())
	return s, err
}

// Filter narrows a list of schedules.
type Filter struct {
	AgentID   *string `json:"agentId"`
	RoutineID *string `json:"routineId"`
	Enabled   *bool   `json:"enabled"`
}

// Check refuses a filter that no schedule could fit.
func (f Filter) Check() error {
	if f.AgentID != nil && !ident.Valid(*f.AgentID) || f.RoutineID != nil && !ident.Valid(*f.RoutineID) {
		return fault.Invalid("agentId and routineId are ids")
	}
	return nil
}

// List is up to limit schedules that fit the filter, by name, after the cursor.
func List(ctx context.Context, q postgres.Querier, f Filter, after *Cursor, limit int) ([]Schedule, error) {
	var name, id *string
	if after != nil {
		name, id = &after.Name, &after.ID
	}
	return postgres.All(ctx, q, scanSchedule, `select `+scheduleColumns+` from schedules where deleted_at is null and ($1::text is null or (name, id) > ($1, $2::uuid))
		and ($4::uuid is null or agent_id = $4) and ($5::uuid is null or routine_id = $5) and ($6::boolean is null or enabled = $6) order by name, id limit $3`,
		name, id, limit, f.AgentID, f.RoutineID, f.Enabled)
}

// Get is one schedule.
func Get(ctx context.Context, q postgres.Querier, id string) (Schedule, error) {
	return oneSchedule(ctx, q, id, ` and deleted_at is null`)
}

// For is Get for an execution of the schedule: until tx ends nobody changes or deletes it.
func For(ctx context.Context, tx pgx.Tx, id string) (Schedule, error) {
	return oneSchedule(ctx, tx, id, ` and deleted_at is null for no key update`)
}

func oneSchedule(ctx context.Context, q postgres.Querier, id, more string) (Schedule, error) {
	if !ident.Valid(id) {
		return Schedule{}, fault.Missing("schedule")
	}
	return postgres.One(ctx, q, "schedule", scanSchedule, `select `+scheduleColumns+` from schedules where id = $1`+more, id)
}

// Create makes a schedule. The clock is to be told of it when it is committed: Keeper.Settle.
func Create(ctx context.Context, tx pgx.Tx, tenantID, userID string, f Fields) (Schedule, error) {
	now := ident.Now()
	s := Schedule{ID: ident.New(), Enabled: true, Missed: MissedSkip, CreatedBy: userID, CreatedAt: now, UpdatedAt: now}
	if err := f.apply(&s, now.Time); err != nil {
		return s, err
	}
	if err := s.checkTarget(ctx, tx); err != nil {
		return s, err
	}
	if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended($1, 0))`, "schedules of "+tenantID); err != nil {
		return s, err
	}
	var count int
	if err := tx.QueryRow(ctx, `select count(*) from schedules where deleted_at is null`).Scan(&count); err != nil {
		return s, err
	}
	if count >= MaxSchedules {
		return s, fault.Invalid("a tenant has at most %d schedules", MaxSchedules)
	}
	_, err := tx.Exec(ctx, `insert into schedules (tenant_id, id, name, agent_id, routine_id, prompt, input, title, metadata, expression, time_zone, start_at, end_at, enabled, missed,
			loop, since, revision, created_by, created_at, updated_at) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $20)`,
		tenantID, s.ID, s.Name, s.AgentID, s.RoutineID, s.Prompt, s.Input, s.Title, s.Metadata, s.Expression, s.TimeZone, s.StartAt, s.EndAt, s.Enabled, s.Missed, s.Loop,
		s.since, s.revision, s.CreatedBy, now)
	s.next(now.Time)
	return s, err
}

// Update changes the given fields. The clock is to be told of it when it is committed: Keeper.Settle.
func Update(ctx context.Context, tx pgx.Tx, id string, f Fields) (Schedule, error) {
	s, err := For(ctx, tx, id)
	if err != nil {
		return s, err
	}
	now := ident.Now()
	if err := f.apply(&s, now.Time); err != nil {
		return s, err
	}
	if f.AgentID.Set || f.RoutineID.Set { // one whose agent was archived since can still be disabled
		if err := s.checkTarget(ctx, tx); err != nil {
			return s, err
		}
	}
	s.UpdatedAt, s.Settled = now, s.putRevision == s.revision
	_, err = tx.Exec(ctx, `update schedules set name = $2, agent_id = $3, routine_id = $4, prompt = $5, input = $6, title = $7, metadata = $8, expression = $9, time_zone = $10,
			start_at = $11, end_at = $12, enabled = $13, missed = $14, loop = $15, since = $16, revision = $17, updated_at = $18 where id = $1`,
		s.ID, s.Name, s.AgentID, s.RoutineID, s.Prompt, s.Input, s.Title, s.Metadata, s.Expression, s.TimeZone, s.StartAt, s.EndAt, s.Enabled, s.Missed, s.Loop, s.since,
		s.revision, now)
	s.next(now.Time)
	return s, err
}

// Delete marks a schedule as deleted: nothing of it runs any more, and nobody sees it. Its row goes when the clock has forgotten it: Keeper.Settle.
// Its executions stay, with their threads.
func Delete(ctx context.Context, tx pgx.Tx, id string) (Schedule, error) {
	s, err := For(ctx, tx, id)
	if err != nil {
		return s, err
	}
	_, err = tx.Exec(ctx, `update schedules set deleted_at = $2 where id = $1`, id, ident.Now())
	return s, err
}

// checkTarget refuses an agent or a routine that could never run.
func (s Schedule) checkTarget(ctx context.Context, q postgres.Querier) error {
	kind, id, sql := "agent", s.AgentID, `select status = 'archived' from agents where id = $1`
	if s.RoutineID != nil {
		kind, id, sql = "routine", s.RoutineID, `select false from routines where id = $1 and deleted_at is null`
	}
	if !ident.Valid(*id) {
		return fault.Missing(kind)
	}
	archived, err := postgres.One(ctx, q, kind, pgx.RowTo[bool], sql, *id)
	if err == nil && archived {
		return fault.Invalid("the agent is archived")
	}
	return err
}
