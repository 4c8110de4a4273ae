package connection

import (
	"cmp"
	"context"
	"errors"
	"log/slog"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// Delete ends a connection: the caller's own, or any if the caller is an owner or admin.
func (c *Connections) Delete(ctx context.Context, caller tenant.Caller, id string) (Connection, error) {
	connection, err := get(ctx, c.db.In(caller.TenantID), id, ``)
	if err == nil && connection.UserID != caller.UserID && !seesAll(caller) {
		err = fault.Missing("connection")
	}
	if err != nil {
		return Connection{}, err
	}
	return connection, c.forget(ctx, caller.TenantID, connection)
}

// Leave ends the connections of a user who was deleted.
func (c *Connections) Leave(ctx context.Context, tenantID, userID string) error {
	all, err := postgres.All(ctx, c.db.In(tenantID), scan, `select `+columns+` from connections c where c.user_id = $1`, userID)
	for _, connection := range all {
		if e := c.forget(ctx, tenantID, connection); !fault.IsMissing(e) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// forget revokes the tokens where the provider can, and forgets them; the row comes last: what is left after a failure is a connection that can be deleted
// again. It is done under the lease, so that nobody keeps a renewed token after it.
func (c *Connections) forget(ctx context.Context, tenantID string, connection Connection) error {
	lease, err := c.secrets.Hold(ctx, tenantID, connection.ID)
	if err != nil {
		return err
	}
	connection, err = get(ctx, c.db.In(tenantID), connection.ID, ``) // it may have been renewed meanwhile, or made by another integration
	if err != nil {
		return errors.Join(err, lease.Release(ctx, 0))
	}
	if err := c.revoke(ctx, tenantID, connection); err != nil {
		slog.Warn("the tokens of a connection could not be revoked", "tenant_id", tenantID, "connection_id", connection.ID, "provider", connection.Provider, "error", err)
	}
	if err := c.secrets.Drop(ctx, tenantID, connection.ID); err != nil {
		return errors.Join(err, lease.Release(ctx, 0))
	}
	var b pgx.Batch
	b.Queue(`delete from connections where id = $1`, connection.ID)
	return c.db.Once(ctx, tenantID, &b)
}

// revoke takes the tokens back at the provider.
func (c *Connections) revoke(ctx context.Context, tenantID string, connection Connection) error {
	ctx, cancel := context.WithTimeout(ctx, revokeTime)
	defer cancel()
	with, err := c.clients.find(ctx, tenantID, connection.IntegrationID)
	if err != nil || with.server.RevokeURL == "" {
		return err
	}
	v, err := c.secrets.Get(ctx, tenantID, connection.ID, connection.version)
	token := cmp.Or(v.RefreshToken, v.Access)
	if err != nil || !with.own(v) || token == "" {
		return err
	}
	grant, err := c.clients.grant(ctx, tenantID, with)
	if err != nil {
		return err
	}
	return grant.Revoke(ctx, c.over, with.server.RevokeURL, token)
}
