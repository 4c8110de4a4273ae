package toolserver

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/audit/outbox"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/mcp"
	"github.com/agentplatform/agentplatform/pkg/postgres"
)

// Add registers a server. It is not asked for its tools yet: see Refresh.
func (s *Servers) Add(ctx context.Context, o *outbox.Outbox, tenantID string, n NewServer) (Server, error) {
	server := Server{ID: ident.New(), Name: n.Name, Scopes: []string{}, Transport: mcp.Auto, Auth: Auth{Type: NoAuth}, Timeout: int(DefaultTimeout.Seconds()), LeftOut: []string{},
		CreatedAt: ident.Now()}
	server.UpdatedAt = server.CreatedAt
	if err := checkName(n.Name); err != nil {
		return Server{}, err
	}
	if err := n.apply(&server); err != nil {
		return Server{}, err
	}
	if server.Auth.Type != NoAuth { // before the row: a row's secret is there
		server.version = 1
		if err := s.secrets.Put(ctx, tenantID, server.ID, n.Auth.Value.keep(server.version)); err != nil {
			return Server{}, err
		}
	}
	_, err := outbox.Act(ctx, o, s.db, tenantID, func(tx pgx.Tx) (Server, []audit.Event, error) {
		_, err := tx.Exec(ctx, `insert into tool_servers (tenant_id, `+unqualified+`) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)`,
			append([]any{tenantID}, server.values()...)...)
		if postgres.IsUnique(err, "tool_servers_tenant_id_name_key") {
			err = fault.Invalid("a tool server has the name %s already", server.Name)
		}
		return server, []audit.Event{server.added()}, err
	})
	if err != nil {
		if server.Auth.Type != NoAuth {
			cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
			defer cancel()
			_ = s.secrets.Drop(cleanup, tenantID, server.ID) // of a server that is none: nobody would look for it
		}
		return Server{}, err
	}
	return server, nil
}

// Update changes what is given. Another URL or other scopes are another server to the audit log; another URL is also one whose tools nobody has approved: they
// are forgotten. listed tells whether the list must be asked for anew.
func (s *Servers) Update(ctx context.Context, o *outbox.Outbox, tenantID, id string, n Settings) (server Server, relist bool, err error) {
	if n.Auth.Set { // nobody renews a token meanwhile: it would come over the new credential
		if _, err := Get(ctx, s.db.In(tenantID), id); err != nil {
			return Server{}, false, err
		}
		lease, err := s.secrets.Hold(ctx, tenantID, id)
		if err != nil {
			return Server{}, false, err
		}
		defer func() { _ = lease.Release(ctx, server.version) }() // it runs out by itself
	}
	server, err = outbox.Act(ctx, o, s.db, tenantID, func(tx pgx.Tx) (Server, []audit.Event, error) {
		before, err := lock(ctx, tx, id)
		if err != nil {
			return Server{}, nil, err
		}
		after := before
		if err := n.apply(&after); err != nil {
			return Server{}, nil, err
		}
		relist = n != (Settings{Timeout: n.Timeout})
		if n.Auth.Set {
			after.version = before.version + 1
			if after.Auth.Type == NoAuth {
				err = s.secrets.Drop(ctx, tenantID, id)
			} else {
				err = s.secrets.Put(ctx, tenantID, id, n.Auth.Value.keep(after.version))
			}
			if err != nil {
				return Server{}, nil, err
			}
		}
		return s.changed(ctx, tx, before, after)
	})
	return server, relist, err
}

// changed writes what an update did.
func (s *Servers) changed(ctx context.Context, tx pgx.Tx, before, after Server) (Server, []audit.Event, error) {
	var events []audit.Event
	if before.URL != after.URL || !equal(before.Scopes, after.Scopes) {
		events = []audit.Event{before.removed(), after.added()}
	}
	if before.URL != after.URL {
		after.ListedAt, after.Error, after.LeftOut = nil, nil, []string{}
		if _, err := tx.Exec(ctx, `delete from tool_server_tools where server_id = $1`, after.ID); err != nil {
			return Server{}, nil, err
		}
	}
	if before.URL != after.URL || before.Transport != after.Transport {
		after.speaks = nil
	}
	after.UpdatedAt = ident.Now()
	_, err := tx.Exec(ctx, `update tool_servers set url = $2, scopes = $3, transport = $4, auth = $5, header = $6, client_id = $7, token_url = $8, timeout = $9, error = $10, left_out = $11,
		listed_at = $12, speaks = $13, secret_version = $14, updated_at = $15 where id = $1`, after.ID, after.URL, after.Scopes, after.Transport, after.Auth.Type, after.Auth.Header,
		after.Auth.ClientID, after.Auth.TokenURL, after.Timeout, after.Error, after.LeftOut, after.ListedAt, after.speaks, after.version, after.UpdatedAt)
	return after, events, err
}

func equal(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// Remove takes a server away, its secret first: what is left after a failure is a server that can be removed again.
func (s *Servers) Remove(ctx context.Context, o *outbox.Outbox, tenantID, id string) (Server, error) {
	if _, err := Get(ctx, s.db.In(tenantID), id); err != nil {
		return Server{}, err
	}
	if err := s.secrets.Drop(ctx, tenantID, id); err != nil {
		return Server{}, err
	}
	return outbox.Act(ctx, o, s.db, tenantID, func(tx pgx.Tx) (Server, []audit.Event, error) {
		server, err := lock(ctx, tx, id)
		if err != nil {
			return Server{}, nil, err
		}
		if _, err := tx.Exec(ctx, `delete from tool_server_tools where server_id = $1`, id); err != nil {
			return Server{}, nil, err
		}
		_, err = tx.Exec(ctx, `delete from tool_servers where id = $1`, id)
		return server, []audit.Event{server.removed()}, err
	})
}
