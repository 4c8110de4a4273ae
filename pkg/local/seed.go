package local

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/agent"
	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/audit/outbox"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/user"
)

// A seeded tenant, with ids of its own so that a second start finds it.
type seedTenant struct {
	id, slug, name             string
	space, template, agent     string
	agentName, agentSystemText string
	users                      []seedUser
}

type seedUser struct {
	id, email string
	role      tenant.Role
}

// Operator is the seeded platform operator.
const Operator = "ops@acme.test"

var seeds = []seedTenant{
	{
		id: "01900000-0000-7000-8000-00000000a000", slug: "acme", name: "Acme",
		space: "01900000-0000-7000-8000-00000000a001", template: "01900000-0000-7000-8000-00000000a002", agent: "01900000-0000-7000-8000-00000000a003",
		agentName: "Ada", agentSystemText: "You are Acme's assistant. Answer briefly.",
		users: []seedUser{
			{"01900000-0000-7000-8000-00000000a010", "alice@acme.test", tenant.Owner},
			{"01900000-0000-7000-8000-00000000a011", "max@acme.test", tenant.Member},
			{"01900000-0000-7000-8000-00000000a012", Operator, tenant.Member},
		},
	},
	{
		id: "01900000-0000-7000-8000-00000000b000", slug: "globex", name: "Globex",
		space: "01900000-0000-7000-8000-00000000b001", template: "01900000-0000-7000-8000-00000000b002", agent: "01900000-0000-7000-8000-00000000b003",
		agentName: "Grace", agentSystemText: "You are Globex's assistant. Answer briefly.",
		users: []seedUser{{"01900000-0000-7000-8000-00000000b010", "bob@globex.test", tenant.Owner}},
	},
}

// TenantSlug is a seeded tenant's; another's is its id.
func TenantSlug(id string) string {
	for _, t := range seeds {
		if t.id == id {
			return t.slug
		}
	}
	return id
}

// seed gives a new platform its tenants, through the same code that makes any tenant, so that the audit log tells of them. What is there stays, but
// for the model of the seeded template, which follows the configuration until somebody changes the template. It answers the addresses of the users that these tenants have.
func seed(ctx context.Context, db *postgres.DB, o *outbox.Outbox, modelID string) (addresses []string, err error) {
	for _, t := range seeds {
		err := o.InTenant(ctx, db, t.id, func(tx pgx.Tx) error {
			var there bool
			err := tx.QueryRow(ctx, `select exists (select from tenants)`).Scan(&there)
			if err == nil && there {
				_, err = tx.Exec(ctx, `update agent_templates set model_id = $2 where id = $1 and model_id <> $2 and updated_at = created_at`, t.template, modelID)
			}
			if err == nil && !there {
				err = t.found(ctx, tx, o, modelID)
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("the seeded tenant %s: %w", t.slug, err)
		}
		users, err := postgres.All(ctx, db.In(t.id), pgx.RowTo[string], `select email from users`)
		if err != nil {
			return nil, err
		}
		addresses = append(addresses, users...)
	}
	return addresses, nil
}

func (t seedTenant) found(ctx context.Context, tx pgx.Tx, o *outbox.Outbox, modelID string) error {
	_, events, err := user.Found(ctx, tx, user.Founding{TenantID: t.id, Slug: t.slug, Name: t.name, SpaceID: t.space,
		Agent: agent.Default{TemplateID: t.template, ID: t.agent, ModelID: modelID, Name: t.agentName, SystemPrompt: t.agentSystemText}})
	if err != nil {
		return err
	}
	for _, u := range t.users {
		_, added, err := user.Add(ctx, tx, t.id, seeder, user.New{ID: u.id, Email: u.email, Role: u.role})
		if err != nil {
			return err
		}
		events = append(events, added...)
	}
	for i := range events {
		e := &events[i]
		e.Actor, e.ActorType, e.Source = seeder, audit.ActorSystem, audit.SourceSystem
	}
	return o.Record(ctx, tx, events...)
}

// seeder is the actor of what the platform does at its first start.
const seeder = "platform"
