package pgtest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// World is a tenant with what every tenant has: a template, an agent, a default space, an owner.
type World struct {
	TenantID, TemplateID, AgentID, SpaceID, UserID string
	// Context carries the owner as the caller.
	Context context.Context
}

// ModelID is the model of a World's template.
const ModelID = "offline.echo-1"

// World makes a tenant. The owner's address is owner@<slug>.test.
func (db *DB) World(t testing.TB, slug string) World {
	t.Helper()
	w := World{TenantID: db.Tenant(t, slug), TemplateID: ident.New(), AgentID: ident.New(), SpaceID: ident.New(), UserID: ident.New()}
	var b pgx.Batch
	b.Queue(`insert into agent_templates (tenant_id, id, name, model_id, tools, is_default) values ($1, $2, 'Default', $3, '{read_thread}', true)`, w.TenantID, w.TemplateID, ModelID)
	b.Queue(`insert into agents (tenant_id, id, name, status, system_prompt, template_id) values ($1, $2, 'Ada', 'active', 'Answer briefly.', $3)`, w.TenantID, w.AgentID, w.TemplateID)
	b.Queue(`insert into spaces (tenant_id, id, name, default_agent_id, is_default) values ($1, $2, 'Default', $3, true)`, w.TenantID, w.SpaceID, w.AgentID)
	b.Queue(`insert into users (tenant_id, id, email, role) values ($1, $2, $3, 'owner')`, w.TenantID, w.UserID, "owner@"+slug+".test")
	if err := db.App.Once(t.Context(), w.TenantID, &b); err != nil {
		t.Fatalf("pgtest: world %s: %v", slug, err)
	}
	w.Context = tenant.With(t.Context(), tenant.Caller{TenantID: w.TenantID, TenantSlug: slug, UserID: w.UserID, Email: "owner@" + slug + ".test", EmailVerified: true, Role: tenant.Owner})
	return w
}
