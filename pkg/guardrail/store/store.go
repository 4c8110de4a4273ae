// Package store keeps tenants' guardrails in the database.
//
// What holds: an agent or template that names a guardrail names one of its tenant, and one that exists. Who writes such a name takes the guardrail's
// row for key share first; who deletes a guardrail locks it, and then looks for those that name it.
package store

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/guardrail"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/text"
)

const columns = `g.id, g.name, g.description, g.kind, g.rules, g.bedrock, g.blocked_input_message, g.blocked_output_message, g.created_at, g.updated_at`

func scan(row pgx.CollectableRow) (guardrail.Guardrail, error) {
	var g guardrail.Guardrail
	err := row.Scan(&g.ID, &g.Name, &g.Description, &g.Kind, &g.Rules, &g.Bedrock, &g.BlockedInputMessage, &g.BlockedOutputMessage, &g.CreatedAt, &g.UpdatedAt)
	return g, err
}

// Cursor is the sort key of the list.
type Cursor struct{ Name, ID string }

// CursorOf is g's place in the list.
func CursorOf(g guardrail.Guardrail) Cursor { return Cursor{g.Name, g.ID} }

// List is up to limit guardrails by name, after the cursor.
func List(ctx context.Context, q postgres.Querier, after *Cursor, limit int) ([]guardrail.Guardrail, error) {
	var name, id *string
	if after != nil {
		name, id = &after.Name, &after.ID
	}
	return postgres.All(ctx, q, scan, `select `+columns+` from guardrails g where $1::text is null or (name, id) > ($1, $2::uuid) order by name, id limit $3`, name, id, limit)
}

// Get is one guardrail.
func Get(ctx context.Context, q postgres.Querier, id string) (guardrail.Guardrail, error) {
	return one(ctx, q, id, ``)
}

func one(ctx context.Context, q postgres.Querier, id, locking string) (guardrail.Guardrail, error) {
	if !ident.Valid(id) {
		return guardrail.Guardrail{}, fault.Missing("guardrail")
	}
	return postgres.One(ctx, q, "guardrail", scan, `select `+columns+` from guardrails g where id = $1`+locking, id)
}

// Create makes a guardrail.
func Create(ctx context.Context, tx pgx.Tx, tenantID string, s guardrail.Settings) (guardrail.Guardrail, error) {
	if err := s.Complete(); err != nil {
		return guardrail.Guardrail{}, err
	}
	now := ident.Now()
	g := guardrail.Guardrail{ID: ident.New(), CreatedAt: now, UpdatedAt: now}.With(s)
	_, err := tx.Exec(ctx, `insert into guardrails (tenant_id, id, name, description, kind, rules, bedrock, blocked_input_message, blocked_output_message, created_at, updated_at)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10)`,
		tenantID, g.ID, g.Name, g.Description, g.Kind, g.Rules, orNull(g.Bedrock), g.BlockedInputMessage, g.BlockedOutputMessage, g.CreatedAt)
	return g, err
}

// Fields are what an update changes. A list, or Bedrock, is replaced as a whole.
type Fields struct {
	Name                 text.Patch[string]            `json:"name,omitzero"`
	Description          text.Patch[string]            `json:"description,omitzero"`
	Kind                 text.Patch[guardrail.Kind]    `json:"kind,omitzero"`
	Rules                text.Patch[[]guardrail.Rule]  `json:"rules,omitzero"`
	Bedrock              text.Patch[guardrail.Managed] `json:"bedrock,omitzero"`
	BlockedInputMessage  text.Patch[string]            `json:"blockedInputMessage,omitzero"`
	BlockedOutputMessage text.Patch[string]            `json:"blockedOutputMessage,omitzero"`
}

func (f Fields) apply(s *guardrail.Settings) error {
	switch {
	case f.Name.Set && f.Name.Value == nil:
		return fault.Invalid("name must not be null")
	case f.Kind.Set && f.Kind.Value == nil:
		return fault.Invalid("kind must not be null")
	}
	if f.Name.Set {
		s.Name = *f.Name.Value
	}
	if f.Kind.Set {
		s.Kind = *f.Kind.Value
	}
	if f.Rules.Set {
		s.Rules = nil
		if f.Rules.Value != nil {
			s.Rules = *f.Rules.Value
		}
	}
	f.Description.Apply(&s.Description)
	f.Bedrock.Apply(&s.Bedrock)
	f.BlockedInputMessage.Apply(&s.BlockedInputMessage)
	f.BlockedOutputMessage.Apply(&s.BlockedOutputMessage)
	return s.Complete()
}

// Update changes the given fields. Turns that begin later take it as it is then.
func Update(ctx context.Context, tx pgx.Tx, id string, f Fields) (guardrail.Guardrail, error) {
	g, err := one(ctx, tx, id, ` for no key update`)
	if err != nil {
		return g, err
	}
	changed := g.Settings()
	if err := f.apply(&changed); err != nil {
		return g, err
	}
	g = g.With(changed)
	g.UpdatedAt = ident.Now()
	_, err = tx.Exec(ctx, `update guardrails set name = $2, description = $3, kind = $4, rules = $5, bedrock = $6, blocked_input_message = $7, blocked_output_message = $8,
		updated_at = $9 where id = $1`,
		g.ID, g.Name, g.Description, g.Kind, g.Rules, orNull(g.Bedrock), g.BlockedInputMessage, g.BlockedOutputMessage, g.UpdatedAt)
	return g, err
}

// Delete takes a guardrail away, if nothing uses it. Archived agents use nothing.
func Delete(ctx context.Context, tx pgx.Tx, id string) (guardrail.Guardrail, error) {
	g, err := one(ctx, tx, id, ` for update`)
	if err != nil {
		return g, err
	}
	users, err := postgres.All(ctx, tx, pgx.RowTo[string], `(select 'agent ' || name from agents where guardrail_id = $1 and status <> 'archived' order by name limit 5)
		union all (select 'template ' || name from agent_templates where guardrail_id = $1::text order by name limit 5)`, g.ID)
	switch {
	case err != nil:
		return g, err
	case len(users) > 0:
		return g, fault.Invalid("the guardrail is used by %s; give it another one first", users[0])
	}
	_, err = tx.Exec(ctx, `delete from guardrails where id = $1`, g.ID)
	return g, err
}

// orNull is the SQL null for nothing, which would else be JSON's.
func orNull(m *guardrail.Managed) any {
	if m == nil {
		return nil
	}
	raw, _ := json.Marshal(m) // strings
	return string(raw)
}
