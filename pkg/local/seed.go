package local

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/postgres"
)

// A seeded tenant, with ids of its own so that a second start finds it.
type seedTenant struct {
	id, slug, name             string
	space, template, agent     string
	agentName, agentSystemText string
	users                      []seedUser
}

type seedUser struct{ id, email, role string }

// Operator is the seeded platform operator.
const Operator = "ops@acme.test"

var seeds = []seedTenant{
	{
		id: "01900000-0000-7000-8000-00000000a000", slug: "acme", name: "Acme",
		space: "01900000-0000-7000-8000-00000000a001", template: "01900000-0000-7000-8000-00000000a002", agent: "01900000-0000-7000-8000-00000000a003",
		agentName: "Ada", agentSystemText: "You are Acme's assistant. Answer briefly.",
		users: []seedUser{
			{"01900000-0000-7000-8000-00000000a010", "alice@acme.test", "owner"},
			{"01900000-0000-7000-8000-00000000a011", "max@acme.test", "member"},
			{"01900000-0000-7000-8000-00000000a012", Operator, "member"},
		},
	},
	{
		id: "01900000-0000-7000-8000-00000000b000", slug: "globex", name: "Globex",
		space: "01900000-0000-7000-8000-00000000b001", template: "01900000-0000-7000-8000-00000000b002", agent: "01900000-0000-7000-8000-00000000b003",
		agentName: "Grace", agentSystemText: "You are Globex's assistant. Answer briefly.",
		users: []seedUser{{"01900000-0000-7000-8000-00000000b010", "bob@globex.test", "owner"}},
	},
}

// seed gives a new platform its tenants; what is there stays, but for the model of the seeded template, which follows the configuration.
func seed(ctx context.Context, db *postgres.DB, modelID string) error {
	for _, t := range seeds {
		var b pgx.Batch
		b.Queue(`insert into tenants (id, slug, name) values ($1, $2, $3) on conflict do nothing`, t.id, t.slug, t.name)
		b.Queue(`insert into agent_templates (tenant_id, id, name, model_id, tools, is_default) values ($1, $2, 'Default', $3, '{read_thread}', true)
			on conflict (tenant_id, id) do update set model_id = excluded.model_id where agent_templates.model_id <> excluded.model_id`, t.id, t.template, modelID)
		b.Queue(`insert into agents (tenant_id, id, name, status, system_prompt, template_id) values ($1, $2, $3, 'active', $4, $5) on conflict do nothing`,
			t.id, t.agent, t.agentName, t.agentSystemText, t.template)
		b.Queue(`insert into spaces (tenant_id, id, name, default_agent_id, is_default) values ($1, $2, 'Default', $3, true) on conflict do nothing`, t.id, t.space, t.agent)
		for _, u := range t.users {
			b.Queue(`insert into users (tenant_id, id, email, role) values ($1, $2, $3, $4) on conflict do nothing`, t.id, u.id, u.email, u.role)
		}
		if err := db.Once(ctx, t.id, &b); err != nil {
			return err
		}
	}
	return nil
}
