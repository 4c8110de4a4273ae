package agent

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/text"
)

// columns are those of an agent; changing, the last of them, may change.
const (
	columns  = `created_at, id, ` + changing
	changing = `name, description, status, template_id, turns_per_minute, turns_per_hour, turns_per_day, updated_at, ` + settingColumns
)

func scan(row pgx.CollectableRow) (Agent, error) {
	var a Agent
	var limits RateLimits
	err := row.Scan(append([]any{&a.CreatedAt, &a.ID, &a.Name, &a.Description, &a.Status, &a.TemplateID,
		&limits.TurnsPerMinute, &limits.TurnsPerHour, &limits.TurnsPerDay, &a.UpdatedAt}, a.settings().places()...)...)
	if limits != (RateLimits{}) {
		a.RateLimits = &limits
	}
	return a, err
}

// values are what to write to columns.
func (a Agent) values() []any {
	limits := a.limits()
	return append([]any{a.CreatedAt, a.ID, a.Name, a.Description, a.Status, a.TemplateID, limits.TurnsPerMinute, limits.TurnsPerHour, limits.TurnsPerDay, a.UpdatedAt},
		a.settings().values()...)
}

// Cursor is the sort key of the agent list.
type Cursor struct{ Name, ID string }

// Cursor is a's place in the list.
func (a Agent) Cursor() Cursor { return Cursor{a.Name, a.ID} }

// List is up to limit agents by name, after the cursor, in one status or in all.
func List(ctx context.Context, q postgres.Querier, status *Status, after *Cursor, limit int) ([]Agent, error) {
	var name, id *string
	if after != nil {
		name, id = &after.Name, &after.ID
	}
	return postgres.All(ctx, q, scan, `select `+columns+` from agents
		where ($1::text is null or status = $1) and ($2::text is null or (name, id) > ($2, $3::uuid))
		order by name, id limit $4`, status, name, id, limit)
}

// Get is one agent.
func Get(ctx context.Context, q postgres.Querier, id string) (Agent, error) {
	return one(ctx, q, `select `+columns+` from agents where id = $1`, id)
}

func one(ctx context.Context, q postgres.Querier, sql, id string) (Agent, error) {
	if !ident.Valid(id) {
		return Agent{}, fault.Missing("agent")
	}
	return postgres.One(ctx, q, "agent", scan, sql, id)
}

// ByIDs are the agents with these ids, by id; those that do not exist are left out.
func ByIDs(ctx context.Context, q postgres.Querier, ids []string) (map[string]Agent, error) {
	return postgres.Index(ctx, q, scan, func(a Agent) string { return a.ID }, `select `+columns+` from agents where id = any($1::uuid[])`, ids)
}

// Create adds an agent in status created; without a template it takes the tenant's default one.
func Create(ctx context.Context, tx pgx.Tx, tenantID string, f Fields) (Agent, error) {
	a := Agent{ID: ident.New(), Status: Created, CreatedAt: ident.Now()}
	a.UpdatedAt = a.CreatedAt
	if err := f.apply(&a); err != nil {
		return Agent{}, err
	}
	template, err := templateFor(ctx, tx, a.TemplateID)
	if err != nil {
		return Agent{}, err
	}
	a.TemplateID = template
	if err := a.settings().holdGuardrail(ctx, tx); err != nil {
		return Agent{}, err
	}
	return a, insert(ctx, tx, tenantID, a)
}

func insert(ctx context.Context, tx pgx.Tx, tenantID string, a Agent) error {
	_, err := tx.Exec(ctx, `insert into agents (tenant_id, `+columns+`) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)`,
		append([]any{tenantID}, a.values()...)...)
	return err
}

// Update changes the given fields; an archived agent stays as it is. The events are for tx to record.
func Update(ctx context.Context, tx pgx.Tx, id string, f Fields) (Agent, []audit.Event, error) {
	a, err := lock(ctx, tx, id)
	if err != nil {
		return Agent{}, nil, err
	}
	before := a
	if a.Status == Archived {
		return Agent{}, nil, fault.Invalid("the agent is archived")
	}
	if err := f.apply(&a); err != nil {
		return Agent{}, nil, err
	}
	if f.TemplateID.Set {
		chosen := ""
		if f.TemplateID.Value != nil {
			chosen = *f.TemplateID.Value
		}
		if a.TemplateID, err = templateFor(ctx, tx, chosen); err != nil {
			return Agent{}, nil, err
		}
	}
	if f.GuardrailID.Set {
		if err := a.settings().holdGuardrail(ctx, tx); err != nil {
			return Agent{}, nil, err
		}
	}
	a.UpdatedAt = ident.Now()
	_, err = tx.Exec(ctx, `update agents set (`+changing+`) = ($2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19) where id = $1`, a.values()[1:]...)
	if err != nil {
		return Agent{}, nil, err
	}
	events, err := changes(ctx, tx, before, a)
	return a, events, err
}

// Delete archives an agent; the events are for tx to record. An agent that is archived already stays as it is, without an event.
func Delete(ctx context.Context, tx pgx.Tx, id string, reason *string) (Agent, []audit.Event, error) {
	if err := text.CheckOptional("reason", reason, 1<<10); err != nil {
		return Agent{}, nil, err
	}
	a, err := lock(ctx, tx, id)
	if err != nil || a.Status == Archived {
		return a, nil, err
	}
	a.Status, a.UpdatedAt = Archived, ident.Now()
	_, err = tx.Exec(ctx, `update agents set status = $2, updated_at = $3 where id = $1`, a.ID, a.Status, a.UpdatedAt)
	return a, []audit.Event{a.deletion(reason)}, err
}

// lock is Get, and nobody else changes the agent until tx ends.
func lock(ctx context.Context, tx pgx.Tx, id string) (Agent, error) {
	return one(ctx, tx, `select `+columns+` from agents where id = $1 for no key update`, id)
}

func (a Agent) limits() RateLimits {
	if a.RateLimits == nil {
		return RateLimits{}
	}
	return *a.RateLimits
}
