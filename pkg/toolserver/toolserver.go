// Package toolserver holds the MCP servers that tenants register, and gives their tools to turns.
//
// What holds:
//
//   - A tool is offered while it is what a person approved: name, description, schema and promise to be idempotent are pinned by their hash. The first list is
//     approved by whoever registered the server; what is new or changed later waits (Approve), and what the server no longer lists is gone.
//   - Tools are offered as <server>__<tool>; no two tools of a tenant have one name, whatever servers call them (see Name).
//   - Secrets are in the store of secrets only: no row, answer, error or log has one. One value has all that belongs together, and its version, and the row
//     says which version is the last. An OAuth token is renewed early, by one process at a time (a lease in the row).
//   - A credential goes to the origin of the server's URL, or to its token endpoint, and a change of either asks for it anew.
package toolserver

import (
	"context"
	"net/http"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/egress"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/mcp"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/secret"
	"github.com/agentplatform/agentplatform/pkg/secret/kept"
)

// Servers are the tool servers of all tenants. It is safe for concurrent use.
type Servers struct {
	db      *postgres.DB
	secrets *kept.Secrets
	over    *http.Client
}

// New is a Servers that goes out as c says; c.Answer is its own.
func New(db *postgres.DB, secrets secret.Store, c egress.Config) *Servers {
	c.Answer = MaxTimeout
	return &Servers{db, kept.New(db, secrets, place), egress.New(c)}
}

// Close closes connections that nobody uses.
func (s *Servers) Close() { s.over.CloseIdleConnections() }

// Server is a server as the API shows it.
type Server struct {
	ID        string        `json:"id"`
	Name      string        `json:"name"` // unique in the tenant, and for good: its tools' names begin with it
	URL       string        `json:"url"`
	Scopes    []string      `json:"scopes"` // OAuth scopes, what the platform asks for
	Transport mcp.Transport `json:"transport"`
	Auth      Auth          `json:"auth"`
	Timeout   int           `json:"timeoutSeconds"` // of one call, in seconds
	Error     *string       `json:"error"`          // why it did not list its tools when it was asked last
	LeftOut   []string      `json:"leftOut"`        // which tools of its list are not taken, and why
	ListedAt  *ident.Time   `json:"listedAt"`
	CreatedAt ident.Time    `json:"createdAt"`
	UpdatedAt ident.Time    `json:"updatedAt"`

	speaks  *mcp.Transport
	version int // of its secret
}

// Auth is how the platform signs in to a server, without the secret.
type Auth struct {
	Type     AuthType `json:"type"`
	Header   *string  `json:"header"`   // of an API key
	ClientID *string  `json:"clientId"` // of OAuth
	TokenURL *string  `json:"tokenUrl"` // of OAuth
}

// AuthType is how the platform signs in to a server.
type AuthType string

const (
	NoAuth AuthType = "NONE"
	Bearer AuthType = "BEARER"  // a token that stays
	APIKey AuthType = "API_KEY" // a header's value
	OAuth  AuthType = "OAUTH"   // OAuth 2: client credentials, or a refresh token
)

const unqualified = `id, name, url, scopes, transport, auth, header, client_id, token_url, timeout, error, left_out, listed_at, created_at, updated_at, speaks, secret_version`

// columns are a server's, of the table of that name.
func columns(s string) string { return s + strings.ReplaceAll(unqualified, " ", " "+s) }

// fields are where a row's columns go.
func (s *Server) fields() []any {
	return []any{&s.ID, &s.Name, &s.URL, &s.Scopes, &s.Transport, &s.Auth.Type, &s.Auth.Header, &s.Auth.ClientID, &s.Auth.TokenURL, &s.Timeout, &s.Error, &s.LeftOut,
		&s.ListedAt, &s.CreatedAt, &s.UpdatedAt, &s.speaks, &s.version}
}

// values are what the columns hold.
func (s *Server) values() []any {
	return []any{s.ID, s.Name, s.URL, s.Scopes, s.Transport, s.Auth.Type, s.Auth.Header, s.Auth.ClientID, s.Auth.TokenURL, s.Timeout, s.Error, s.LeftOut, s.ListedAt,
		s.CreatedAt, s.UpdatedAt, s.speaks, s.version}
}

func scan(row pgx.CollectableRow) (Server, error) {
	var s Server
	err := row.Scan(s.fields()...)
	return s, err
}

// Cursor is the sort key of the list; names are unique.
type Cursor struct{ Name string }

// Cursor is s's place in the list.
func (s Server) Cursor() Cursor { return Cursor{s.Name} }

// List is up to limit servers by name, after the cursor.
func List(ctx context.Context, q postgres.Querier, after *Cursor, limit int) ([]Server, error) {
	var name *string
	if after != nil {
		name = &after.Name
	}
	return postgres.All(ctx, q, scan, `select `+unqualified+` from tool_servers where $1::text is null or name > $1 order by name limit $2`, name, limit)
}

// Get is one server.
func Get(ctx context.Context, q postgres.Querier, id string) (Server, error) {
	return one(ctx, q, id, `select `+unqualified+` from tool_servers where id = $1`)
}

// lock is Get, and nobody else changes the server until tx ends.
func lock(ctx context.Context, tx pgx.Tx, id string) (Server, error) {
	return one(ctx, tx, id, `select `+unqualified+` from tool_servers where id = $1 for update`)
}

func one(ctx context.Context, q postgres.Querier, id, sql string) (Server, error) {
	if !ident.Valid(id) {
		return Server{}, fault.Missing("tool server")
	}
	return postgres.One(ctx, q, "tool server", scan, sql, id)
}

func (s Server) event(t audit.Type, payload map[string]any) audit.Event {
	payload["mcpId"], payload["url"] = s.ID, s.URL
	return audit.Event{Type: t, ResourceType: "tool_server", ResourceID: s.ID, Payload: payload}
}

func (s Server) added() audit.Event {
	return s.event(audit.ToolServerAdded, map[string]any{"scopes": s.Scopes})
}

func (s Server) removed() audit.Event { return s.event(audit.ToolServerRemoved, map[string]any{}) }
