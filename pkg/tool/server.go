package tool

import (
	"context"
	"net/netip"
	"net/url"
	"regexp"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/text"
)

// Server is an MCP tool server that a tenant registered. It is a record: what asks it for tools is not here.
type Server struct {
	ID        string     `json:"id"`
	Name      string     `json:"name"` // unique in the tenant
	URL       string     `json:"url"`
	Scopes    []string   `json:"scopes"` // OAuth scopes, what the platform asks it for
	CreatedAt ident.Time `json:"createdAt"`
}

const serverColumns = `id, name, url, scopes, created_at`

func scanServer(row pgx.CollectableRow) (Server, error) {
	var s Server
	err := row.Scan(&s.ID, &s.Name, &s.URL, &s.Scopes, &s.CreatedAt)
	return s, err
}

// ServerCursor is the sort key of the server list; names are unique.
type ServerCursor struct{ Name string }

// Cursor is s's place in the list.
func (s Server) Cursor() ServerCursor { return ServerCursor{s.Name} }

// Servers are up to limit servers by name, after the cursor.
func Servers(ctx context.Context, q postgres.Querier, after *ServerCursor, limit int) ([]Server, error) {
	var name *string
	if after != nil {
		name = &after.Name
	}
	return postgres.All(ctx, q, scanServer, `select `+serverColumns+` from tool_servers where $1::text is null or name > $1 order by name limit $2`, name, limit)
}

// NewServer is what a caller registers.
type NewServer struct {
	Name   string   `json:"name"`
	URL    string   `json:"url"`
	Scopes []string `json:"scopes"`
}

// AddServer registers a server; the events are for tx to record.
func AddServer(ctx context.Context, tx pgx.Tx, tenantID string, n NewServer) (Server, []audit.Event, error) {
	if err := n.check(); err != nil {
		return Server{}, nil, err
	}
	s := Server{ID: ident.New(), Name: n.Name, URL: n.URL, Scopes: n.Scopes, CreatedAt: ident.Now()}
	if s.Scopes == nil {
		s.Scopes = []string{}
	}
	_, err := tx.Exec(ctx, `insert into tool_servers (tenant_id, `+serverColumns+`) values ($1, $2, $3, $4, $5, $6)`,
		tenantID, s.ID, s.Name, s.URL, s.Scopes, s.CreatedAt)
	if postgres.IsUnique(err, "tool_servers_tenant_id_name_key") {
		return Server{}, nil, fault.Invalid("a tool server has the name %s already", s.Name)
	}
	return s, []audit.Event{s.event(audit.ToolServerAdded, map[string]any{"scopes": s.Scopes})}, err
}

// RemoveServer takes a server away; the events are for tx to record.
func RemoveServer(ctx context.Context, tx pgx.Tx, id string) (Server, []audit.Event, error) {
	if !ident.Valid(id) {
		return Server{}, nil, fault.Missing("tool server")
	}
	s, err := postgres.One(ctx, tx, "tool server", scanServer, `delete from tool_servers where id = $1 returning `+serverColumns, id)
	return s, []audit.Event{s.event(audit.ToolServerRemoved, map[string]any{})}, err
}

func (s Server) event(t audit.Type, payload map[string]any) audit.Event {
	payload["mcpId"], payload["url"] = s.ID, s.URL
	return audit.Event{Type: t, ResourceType: "tool_server", ResourceID: s.ID, Payload: payload}
}

var (
	serverNames = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	scopeTokens = regexp.MustCompile(`^[\x21\x23-\x5b\x5d-\x7e]{1,200}$`) // RFC 6749 §3.3
)

func (n NewServer) check() error {
	if !serverNames.MatchString(n.Name) {
		return fault.Invalid("name must be 1 to 64 letters, digits, hyphens and underscores")
	}
	if err := checkURL(n.URL); err != nil {
		return err
	}
	if len(n.Scopes) > 50 {
		return fault.Invalid("scopes holds more than 50 entries")
	}
	for _, s := range n.Scopes {
		if !scopeTokens.MatchString(s) {
			return fault.Invalid("scopes holds %q, which is no OAuth scope of 1 to 200 characters", s)
		}
	}
	return nil
}

// checkURL takes what a client on the network may be sent to: what it says there, credentials among it, must not be readable on the way.
func checkURL(s string) error {
	if err := text.Check("url", s, 1, 2048); err != nil {
		return err
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Opaque != "" || u.Hostname() == "":
		return fault.Invalid("url must be an absolute URL")
	case u.User != nil:
		return fault.Invalid("url must not hold a user name or a password")
	case u.Fragment != "":
		return fault.Invalid("url must not hold a fragment")
	case u.Scheme == "https" || u.Scheme == "http" && thisMachine(u.Hostname()):
		return nil
	}
	return fault.Invalid("url must be https; http is for this machine only")
}

func thisMachine(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}
