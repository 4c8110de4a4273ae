package toolserver

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/postgres"
)

// lease takes the right to renew the server's token, for a minute; version is that of the secret kept last. Whoever has it releases it.
func (s *Servers) lease(ctx context.Context, tenantID, serverID string) (mine bool, version int, err error) {
	err = s.db.InTenant(ctx, tenantID, func(tx pgx.Tx) error {
		type state struct {
			free    bool
			version int
		}
		now, err := postgres.One(ctx, tx, "tool server", func(row pgx.CollectableRow) (n state, err error) {
			err = row.Scan(&n.free, &n.version)
			return n, err
		}, `select secret_lease is null or secret_lease < clock_timestamp(), secret_version from tool_servers where id = $1 for update`, serverID)
		if err != nil {
			return err
		}
		mine, version = now.free, now.version
		if !mine {
			return nil
		}
		_, err = tx.Exec(ctx, `update tool_servers set secret_lease = clock_timestamp() + interval '1 minute' where id = $1`, serverID)
		return err
	})
	return mine, version, err
}

// release gives the lease back, and says which secret is the last.
func (s *Servers) release(ctx context.Context, tenantID, serverID string, version int) error {
	var b pgx.Batch
	b.Queue(`update tool_servers set secret_lease = null, secret_version = greatest(secret_version, $2) where id = $1`, serverID, version)
	return s.db.Once(ctx, tenantID, &b)
}

// found keeps where the token endpoint is: from then on credentials go there, whatever the server says later.
func (s *Servers) found(ctx context.Context, tenantID, serverID, tokenURL string) error {
	var b pgx.Batch
	b.Queue(`update tool_servers set token_url = $2 where id = $1 and token_url is null`, serverID, tokenURL)
	return s.db.Once(ctx, tenantID, &b)
}
