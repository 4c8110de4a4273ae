package user

import (
	"context"
	"regexp"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/agent"
	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/space"
	"github.com/agentplatform/agentplatform/pkg/text"
)

// Tenant is a tenant as the API shows it.
type Tenant struct {
	ID        string     `json:"id"`
	Slug      string     `json:"slug"`
	Name      string     `json:"name"`
	CreatedAt ident.Time `json:"createdAt"`
}

// Founding is what a tenant begins with. Its transaction is bound to the id, so whoever begins it chooses that.
type Founding struct {
	TenantID   string // required
	Slug, Name string // required
	SpaceID    string // of the default space; empty: a new one
	Agent      agent.Default
}

// The default agent of a tenant that nobody chose one for.
const (
	defaultAgent  = "Assistant"
	defaultPrompt = "You are a helpful assistant. Answer briefly."
)

var slugs = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// Found makes a tenant with its default template, agent and space; its first owner follows by Add.
func Found(ctx context.Context, tx pgx.Tx, f Founding) (Tenant, []audit.Event, error) {
	if !slugs.MatchString(f.Slug) {
		return Tenant{}, nil, fault.Invalid("slug must be 1 to 63 lower-case letters, digits and hyphens, the first no hyphen")
	}
	if err := text.Check("name", f.Name, 1, 200); err != nil {
		return Tenant{}, nil, err
	}
	t := Tenant{ID: f.TenantID, Slug: f.Slug, Name: f.Name, CreatedAt: ident.Now()}
	_, err := tx.Exec(ctx, `insert into tenants (id, slug, name, created_at) values ($1, $2, $3, $4)`, t.ID, t.Slug, t.Name, t.CreatedAt)
	if postgres.IsUnique(err, "tenants_slug_key") {
		return Tenant{}, nil, fault.Invalid("the slug is taken")
	}
	if err != nil {
		return Tenant{}, nil, err
	}
	if f.Agent.Name == "" {
		f.Agent.Name, f.Agent.SystemPrompt = defaultAgent, defaultPrompt
	}
	a, err := agent.CreateDefault(ctx, tx, t.ID, f.Agent)
	if err != nil {
		return Tenant{}, nil, err
	}
	return t, []audit.Event{a.Creation()}, space.CreateDefault(ctx, tx, t.ID, f.SpaceID, a.ID)
}
