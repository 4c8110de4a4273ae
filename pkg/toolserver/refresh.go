package toolserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/jsonschema"
	"github.com/agentplatform/agentplatform/pkg/mcp"
	"github.com/agentplatform/agentplatform/pkg/oauth"
)

// Refresh asks the server for its tools now, and keeps the list: the first one is approved by userID, who asks for it; what changes later is not. A server that
// does not list them keeps the list that it has, and says why in Error: that is no error of Refresh.
func (s *Servers) Refresh(ctx context.Context, tenantID, serverID, userID string) (Server, error) {
	server, err := Get(ctx, s.db.In(tenantID), serverID)
	if err != nil {
		return Server{}, err
	}
	session, err := s.open(ctx, tenantID, server)
	var tools []mcp.Tool
	var left []string
	if err == nil {
		defer session.Close()
		tools, left, err = session.Tools(ctx)
	}
	if err != nil {
		why, ok := reason(err)
		if errors.Is(err, context.DeadlineExceeded) {
			why, ok = "the server did not answer in time", true
		}
		if !ok {
			return Server{}, err
		}
		return s.note(context.WithoutCancel(ctx), tenantID, serverID, why)
	}
	return s.keep(ctx, tenantID, server, userID, session.Transport, tools, left)
}

// open signs in and connects. A token that the server does not take is renewed once.
func (s *Servers) open(ctx context.Context, tenantID string, server Server) (*session, error) {
	refused := ""
	for {
		header, access, err := s.header(ctx, tenantID, server, refused)
		if err != nil {
			return nil, err
		}
		to := mcp.Target{URL: server.URL, Transport: server.Transport, Header: header}
		if to.Transport == mcp.Auto && server.speaks != nil {
			to.Transport = *server.speaks
		}
		connected, err := mcp.Connect(ctx, s.over, to)
		var e *mcp.Error
		if errors.As(err, &e) && e.Kind == mcp.Denied && access != "" && refused == "" {
			refused = access
			continue
		}
		if to.Transport != server.Transport && errors.As(err, &e) && e.Unspoken() { // it speaks something else by now
			server.speaks = nil
			continue
		}
		if err != nil {
			return nil, err
		}
		return &session{Session: connected, access: access}, nil
	}
}

// session is a connection, and the token that it was made with.
type session struct {
	*mcp.Session
	access string
}

// keep writes a list, unless the server was changed meanwhile.
func (s *Servers) keep(ctx context.Context, tenantID string, asked Server, userID string, speaks mcp.Transport, tools []mcp.Tool, left []string) (server Server, err error) {
	rows, refused := offered(asked.Name, tools)
	left = append(slices.Clone(left), refused...)
	if left == nil {
		left = []string{}
	}
	err = s.db.InTenant(ctx, tenantID, func(tx pgx.Tx) error {
		if server, err = lock(ctx, tx, asked.ID); err != nil {
			return err
		}
		if !server.UpdatedAt.Equal(asked.UpdatedAt.Time) {
			return fault.Invalid("the tool server was changed meanwhile: refresh it again")
		}
		approver := ""
		if server.ListedAt == nil {
			approver = userID
		}
		if err := writeList(ctx, tx, tenantID, server.ID, approver, rows); err != nil {
			return err
		}
		now := ident.Now()
		server.ListedAt, server.LeftOut, server.Error, server.speaks = &now, left, nil, &speaks
		_, err := tx.Exec(ctx, `update tool_servers set listed_at = $2, left_out = $3, error = null, speaks = $4 where id = $1`, server.ID, now, left, speaks)
		return err
	})
	return server, err
}

// offered are tools by the names that they are offered as; left says which cannot be.
func offered(server string, tools []mcp.Tool) (rows []listed, left []string) {
	taken := map[string]bool{}
	for _, t := range tools {
		name := Name(server, t.Name)
		if taken[name] {
			left = append(left, fmt.Sprintf("the tool %q is left out: another one has the name %s", t.Name, name))
			continue
		}
		if _, err := jsonschema.Compile(string(t.Schema)); err != nil {
			left = append(left, fmt.Sprintf("the tool %q is left out: its schema: %.300v", t.Name, err))
			continue
		}
		taken[name] = true
		rows = append(rows, listed{Name: name, Tool: t.Name, Description: t.Description, Schema: t.Schema, Idempotent: t.Idempotent, Hash: hash(t)})
	}
	return rows, left
}

// note keeps why a server did not list its tools.
func (s *Servers) note(ctx context.Context, tenantID, serverID, why string) (server Server, err error) {
	err = s.db.InTenant(ctx, tenantID, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `update tool_servers set error = $2 where id = $1`, serverID, why); err != nil {
			return err
		}
		server, err = Get(ctx, tx, serverID)
		return err
	})
	return server, err
}

// reason is an error that the tenant may read, in its words; false: there is none, and the log has it.
func reason(err error) (string, bool) {
	var m *mcp.Error
	var o *oauth.Error
	var f *fault.Error
	switch {
	case errors.As(err, &m):
		return m.Reason, true
	case errors.As(err, &o):
		return o.Reason, true
	case errors.As(err, &f) && f.Type != fault.InternalError:
		return f.Message, true
	}
	return "", false
}

// told is an error for a turn's model.
func told(server Server, err error) error {
	why, ok := reason(err)
	switch {
	case ok:
		return fault.Invalid("tool server %s: %s", server.Name, why)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	slog.Error("a tool server cannot be used", "server_id", server.ID, "error", err)
	return fault.Invalid("tool server %s cannot be used now", server.Name)
}
