// Package connection is users' links to task trackers, by OAuth 2: with one the platform asks a tracker as the user who made it.
//
// What holds:
//
//   - Tokens are in the store of secrets only; no row, answer, error or log has one. They go to the origins that they were given for: where an integration
//     names others, its users connect again.
//   - A connection is made by the user who began it: the state that comes back from a provider is good once, for ten minutes, and for that user. A code is
//     good only with its verifier (PKCE), which is made of the state and of the client's secret, so that neither the browser nor the database has it.
//   - A person at a provider is connected to one user of the tenant, by one integration: by the one that the user has connected by last.
//   - Tokens of which no connection comes are revoked, where the provider can.
//   - A token is renewed before it ends, by one process at a time, and a refresh token that was replaced is kept. See pkg/secret/kept.
//   - A connection that the person or the provider has ended shows that, and why, until its user connects again. A provider that cannot be reached ends none.
//   - Without its user, a connection is of no use: of one who is disabled or gone no token is given out.
package connection

import (
	"context"
	"net/http"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/egress"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/integration"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/secret"
	"github.com/agentplatform/agentplatform/pkg/secret/kept"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// Connections are the connections of all tenants. It is safe for concurrent use.
type Connections struct {
	db      *postgres.DB
	clients *Clients
	secrets *kept.Secrets
	over    *http.Client
}

// New is Connections whose tokens are kept in a store, that goes out as c says.
func New(db *postgres.DB, store secret.Store, clients *Clients, c egress.Config) *Connections {
	return &Connections{db, clients, kept.New(db, store, kept.Place{Table: "connections", Word: "connections", Noun: "connection"}), egress.New(c)}
}

// Close closes connections to providers that nobody uses.
func (c *Connections) Close() { c.over.CloseIdleConnections() }

// Status is whether a connection can be used.
type Status string

// The states.
const (
	Active    Status = "active"
	Reconnect Status = "reconnect" // its user has to connect again
)

// Connection is a connection as the API shows it.
type Connection struct {
	ID             string               `json:"id"`
	UserID         string               `json:"userId"`
	IntegrationID  string               `json:"integrationId"` // whose OAuth client it was made with
	Provider       integration.Provider `json:"provider"`
	ProviderUserID string               `json:"providerUserId"` // who the user is there
	Account        *string              `json:"account"`        // the workspace or site
	AccountName    *string              `json:"accountName"`
	Scopes         []string             `json:"scopes"` // that were granted
	Status         Status               `json:"status"`
	Reason         *string              `json:"reason"` // why the user has to connect again
	CreatedAt      ident.Time           `json:"createdAt"`
	UpdatedAt      ident.Time           `json:"updatedAt"`

	version int // of its tokens
}

const columns = `c.id, c.user_id, c.integration_id, c.provider, c.provider_user_id, c.account, c.account_name, c.scopes, c.status, c.reason, c.created_at, c.updated_at, c.secret_version`

func scan(row pgx.CollectableRow) (Connection, error) {
	var c Connection
	err := row.Scan(&c.ID, &c.UserID, &c.IntegrationID, &c.Provider, &c.ProviderUserID, &c.Account, &c.AccountName, &c.Scopes, &c.Status, &c.Reason, &c.CreatedAt, &c.UpdatedAt,
		&c.version)
	return c, err
}

// Cursor is the sort key of the list; ids follow time.
type Cursor struct{ ID string }

// Cursor is c's place in the list.
func (c Connection) Cursor() Cursor { return Cursor{c.ID} }

// seesAll reports whether the caller sees other users' connections.
func seesAll(c tenant.Caller) bool { return c.Role == tenant.Owner || c.Role == tenant.Admin }

// List is up to limit connections that the caller may see, oldest first, after the cursor.
func List(ctx context.Context, q postgres.Querier, caller tenant.Caller, after *Cursor, limit int) ([]Connection, error) {
	var user, id *string
	if !seesAll(caller) {
		user = &caller.UserID
	}
	if after != nil {
		id = &after.ID
	}
	return postgres.All(ctx, q, scan, `select `+columns+` from connections c where ($1::uuid is null or c.user_id = $1) and ($2::uuid is null or c.id > $2) order by c.id limit $3`,
		user, id, limit)
}

func get(ctx context.Context, q postgres.Querier, id, condition string) (Connection, error) {
	if !ident.Valid(id) {
		return Connection{}, fault.Missing("connection")
	}
	return postgres.One(ctx, q, "connection", scan, `select `+columns+` from connections c where c.id = $1`+condition, strings.ToLower(id))
}
