// Package integration is tenants' links to outside services: what comes in from them into threads, what goes back to them, and the log of both.
//
// What holds:
//
//   - An integration's secrets are in the store of secrets only: no row, answer, error or log has one. All that belongs together is one value with a version,
//     and the row says which version is the last. They are never taken away without the integration, so that a version names one value for good.
//   - A secret goes to the origin that it was given for: a change of where a provider is asks for it anew.
//   - What a stranger sends reaches a tenant only after its signature was found good, by a secret that is the tenant's own.
//   - Every delivery is in the log, for 90 days, but for what says nothing to an agent: people's talk with one another is none of the platform's business. A body is
//     there only as far as it may be kept. See Log and Receiver.
package integration

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
)

// Provider is the outside service of an integration.
type Provider string

// The providers.
const (
	Slack   Provider = "slack"
	GitHub  Provider = "github"
	Email   Provider = "email"
	Generic Provider = "generic" // whatever signs JSON as the platform says
	Linear  Provider = "linear"
	Jira    Provider = "jira"
	Asana   Provider = "asana"
)

// Channel reports whether conversations come in by it and are answered.
func (p Provider) Channel() bool { return p == Slack || p == GitHub || p == Email || p == Generic }

// Tracker reports whether it has people's tasks: users connect to it by an OAuth client that the integration has.
func (p Provider) Tracker() bool { return p == Linear || p == Jira || p == Asana }

// The bounds of an integration's rate limit, in deliveries a minute.
const (
	DefaultRateLimit = 600
	MaxRateLimit     = 100_000
)

// Integration is an integration as the API shows it.
type Integration struct {
	ID        string     `json:"id"`
	Name      string     `json:"name"` // unique in the tenant
	Provider  Provider   `json:"provider"`
	AgentID   *string    `json:"agentId"` // whose threads are opened; nil: of a task tracker
	Config    string     `json:"config"`  // a JSON object, of the provider
	Enabled   bool       `json:"enabled"`
	RateLimit int        `json:"rateLimit"` // deliveries a minute
	URL       *string    `json:"url"`       // the path that deliveries are posted to; nil: it gets none by HTTP
	Address   *string    `json:"address"`   // of e-mail: the local part, before the @
	HasSecret bool       `json:"hasSecret"`
	Error     *string    `json:"error"` // why the last reply could not be posted
	CreatedBy string     `json:"createdBy"`
	CreatedAt ident.Time `json:"createdAt"`
	UpdatedAt ident.Time `json:"updatedAt"`

	Version int `json:"-"` // of its secret; 0: it has none
}

const columns = `id, name, provider, agent_id, config, address, enabled, rate_limit, secret_version, error, created_by, created_at, updated_at`

func scan(row pgx.CollectableRow) (Integration, error) {
	var i Integration
	err := row.Scan(&i.ID, &i.Name, &i.Provider, &i.AgentID, &i.Config, &i.Address, &i.Enabled, &i.RateLimit, &i.Version, &i.Error, &i.CreatedBy, &i.CreatedAt, &i.UpdatedAt)
	i.show()
	return i, err
}

// show fills in what follows from the rest.
func (i *Integration) show() {
	i.HasSecret = i.Version > 0
	if i.Provider.Channel() && i.Provider != Email {
		i.URL = new("/integrations/" + i.ID + "/webhook")
	}
}

// Cursor is the sort key of the list; names are unique.
type Cursor struct{ Name string }

// Cursor is i's place in the list.
func (i Integration) Cursor() Cursor { return Cursor{i.Name} }

// List is up to limit integrations by name, after the cursor.
func List(ctx context.Context, q postgres.Querier, after *Cursor, limit int) ([]Integration, error) {
	var name *string
	if after != nil {
		name = &after.Name
	}
	return postgres.All(ctx, q, scan, `select `+columns+` from integrations where $1::text is null or name > $1 order by name limit $2`, name, limit)
}

// Get is one integration.
func Get(ctx context.Context, q postgres.Querier, id string) (Integration, error) {
	return one(ctx, q, id, ``)
}

func one(ctx context.Context, q postgres.Querier, id, locking string) (Integration, error) {
	if !ident.Valid(id) {
		return Integration{}, fault.Missing("integration")
	}
	return postgres.One(ctx, q, "integration", scan, `select `+columns+` from integrations where id = $1`+locking, strings.ToLower(id))
}
