package webhook

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/routine"
)

const columns = `id, tenant_id, token_end, name, description, target_type, agent_id, routine_id, prompt, config, enabled, rate_limit,
	last_invoked_at, invocation_count, version, secret_version, created_at, updated_at`

func scan(row pgx.CollectableRow) (Webhook, error) {
	var w Webhook
	var end string
	var config []byte
	err := row.Scan(&w.ID, &w.TenantID, &end, &w.Name, &w.Description, &w.TargetType, &w.AgentID, &w.RoutineID, &w.Prompt, &config, &w.Enabled, &w.RateLimit,
		&w.LastInvokedAt, &w.InvocationCount, &w.Version, &w.secret, &w.CreatedAt, &w.UpdatedAt)
	if err != nil {
		return w, err
	}
	w.Token, w.HasSecret = masked(end), w.secret > 0
	d := json.NewDecoder(bytes.NewReader(config))
	d.UseNumber() // numbers stay as their owner wrote them
	err = d.Decode(&w.Config)
	return w, err
}

// Cursor is the sort key of the webhook list.
type Cursor struct{ Name, ID string }

// Cursor is w's place in the list.
func (w Webhook) Cursor() Cursor { return Cursor{w.Name, w.ID} }

// List is up to limit webhooks by name, after the cursor.
func List(ctx context.Context, q postgres.Querier, after *Cursor, limit int) ([]Webhook, error) {
	var name, id *string
	if after != nil {
		name, id = &after.Name, &after.ID
	}
	return postgres.All(ctx, q, scan, `select `+columns+` from webhooks where $1::text is null or (name, id) > ($1, $2::uuid) order by name, id limit $3`, name, id, limit)
}

// Get is one webhook.
func Get(ctx context.Context, q postgres.Querier, id string) (Webhook, error) {
	return one(ctx, q, id, ``)
}

func one(ctx context.Context, q postgres.Querier, id, locking string) (Webhook, error) {
	if !ident.Valid(id) {
		return Webhook{}, fault.Missing("webhook")
	}
	return postgres.One(ctx, q, "webhook", scan, `select `+columns+` from webhooks where id = $1`+locking, id)
}

// Create makes a webhook. Its Token is whole, this one time.
func Create(ctx context.Context, tx pgx.Tx, tenantID string, s Settings) (Webhook, error) {
	if err := s.complete(); err != nil {
		return Webhook{}, err
	}
	if err := checkTarget(ctx, tx, s); err != nil {
		return Webhook{}, err
	}
	now, token := ident.Now(), newToken()
	w := Webhook{ID: ident.New(), TenantID: tenantID, Token: token, Settings: s, CreatedAt: now, UpdatedAt: now, Version: 1}
	_, err := tx.Exec(ctx, `insert into webhooks (tenant_id, id, token_hash, token_end, name, description, target_type, agent_id, routine_id, prompt, config, enabled, rate_limit,
			created_at, updated_at, provider) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $14, $15)`,
		tenantID, w.ID, hash(token), token[tokenLength-shown:], w.Name, w.Description, w.TargetType, w.AgentID, w.RoutineID, w.Prompt, w.Config, w.Enabled, w.RateLimit, now, w.provider())
	return w, err
}

// Update changes a webhook's settings to what change makes of it as it stands, if change does not refuse.
func Update(ctx context.Context, tx pgx.Tx, id string, change func(now Webhook) (Settings, error)) (Webhook, error) {
	w, err := one(ctx, tx, id, ` for no key update`)
	if err != nil {
		return w, err
	}
	changed, err := change(w)
	if err != nil {
		return w, err
	}
	if err := changed.complete(); err != nil || changed.same(w.Settings) {
		return w, err
	}
	if changed.target() != w.target() { // a webhook whose agent was archived since, or whose routine was deleted, can still be disabled
		if err := checkTarget(ctx, tx, changed); err != nil {
			return w, err
		}
	}
	w.Settings = changed
	err = tx.QueryRow(ctx, `update webhooks set name = $2, description = $3, target_type = $4, agent_id = $5, routine_id = $6, prompt = $7, config = $8, enabled = $9,
			rate_limit = $10, version = version + 1, updated_at = $11, provider = $12 where id = $1 returning version, updated_at`,
		id, w.Name, w.Description, w.TargetType, w.AgentID, w.RoutineID, w.Prompt, w.Config, w.Enabled, w.RateLimit, ident.Now(), w.provider()).Scan(&w.Version, &w.UpdatedAt)
	return w, err
}

// Delete takes a webhook away, if check does not refuse. Its runs stay, with their threads; its keys go with the next sweep of old ones.
func Delete(ctx context.Context, tx pgx.Tx, id string, check func(now Webhook) error) error {
	w, err := one(ctx, tx, id, ` for update`)
	if err != nil {
		return err
	}
	if err := check(w); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `delete from webhooks where id = $1`, id)
	return err
}

// checkTarget refuses an agent that could never be started, and a routine that is not there.
func checkTarget(ctx context.Context, tx pgx.Tx, s Settings) error {
	if s.TargetType == Task && s.AgentID == nil {
		return checkDefaultAgent(ctx, tx)
	}
	if s.TargetType == Routine {
		_, err := routine.Get(ctx, tx, *s.RoutineID, nil)
		if fault.IsMissing(err) {
			err = unknown("routine")
		}
		return err
	}
	found, err := postgres.All(ctx, tx, pgx.RowTo[bool], `select status = 'archived' from agents where id = $1`, s.AgentID)
	switch {
	case err != nil:
		return err
	case len(found) == 0:
		return unknown("agent")
	case found[0]:
		return fault.Invalid("the agent is archived")
	}
	return nil
}
