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
	ID          string     `json:"id"`
	Slug        string     `json:"slug"`
	Name        string     `json:"name"`
	TurnsAtOnce int        `json:"turnsAtOnce"` // how many turns run at a time
	CreatedAt   ident.Time `json:"createdAt"`
}

// TenantChange is what UpdateTenant changes; nil: not.
type TenantChange struct {
	Name        *string `json:"name"`
	TurnsAtOnce *int    `json:"turnsAtOnce"`
}

const (
	maxTenantName   = 200    // bytes
	mostTurnsAtOnce = 10_000 // the table's check
)

// UpdateTenant changes the tenant that q is bound to.
func UpdateTenant(ctx context.Context, q postgres.Querier, c TenantChange) (Tenant, error) {
	if c.Name != nil {
		if err := text.Check("name", *c.Name, 1, maxTenantName); err != nil {
			return Tenant{}, err
		}
	}
	if n := c.TurnsAtOnce; n != nil && (*n < 1 || *n > mostTurnsAtOnce) {
		return Tenant{}, fault.Invalid("turnsAtOnce must be from 1 to %d", mostTurnsAtOnce)
	}
	return postgres.One(ctx, q, "tenant", func(row pgx.CollectableRow) (t Tenant, err error) {
		err = row.Scan(&t.ID, &t.Slug, &t.Name, &t.TurnsAtOnce, &t.CreatedAt)
		return t, err
	}, `update tenants set name = coalesce($1, name), turns_at_once = coalesce($2, turns_at_once) returning id, slug, name, turns_at_once, created_at`, c.Name, c.TurnsAtOnce)
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
	if err := text.Check("name", f.Name, 1, maxTenantName); err != nil {
		return Tenant{}, nil, err
	}
	t := Tenant{ID: f.TenantID, Slug: f.Slug, Name: f.Name, CreatedAt: ident.Now()}
	err := tx.QueryRow(ctx, `insert into tenants (id, slug, name, created_at) values ($1, $2, $3, $4) returning turns_at_once`,
		t.ID, t.Slug, t.Name, t.CreatedAt).Scan(&t.TurnsAtOnce)
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
