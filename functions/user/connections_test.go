package user_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/secret"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// The tokens of somebody who is deleted go, and what was begun with them.
func TestADeletedUsersConnectionsGo(t *testing.T) {
	w := newWorld(t)
	max, eve := w.person(t, "max@acme.test", tenant.Member), w.person(t, "eve@acme.test", tenant.Member)
	exec := func(sql string, args ...any) {
		_, err := w.DB.Superuser(t).Exec(t.Context(), sql, args...)
		require.NoError(t, err)
	}
	integration := ident.New()
	exec(`insert into integrations (tenant_id, id, name, provider, config, created_by) values ($1, $2, 'Linear', 'linear', '{"clientId":"c"}', $3)`, w.TenantID, integration, w.UserID)
	connect := func(userID string) secret.ID {
		connection := ident.New()
		exec(`insert into connections (tenant_id, id, user_id, integration_id, provider, provider_user_id, secret_version) values ($1, $2, $3, $4, 'linear', $5, 1)`,
			w.TenantID, connection, userID, integration, connection)
		exec(`insert into connection_states (tenant_id, state_hash, user_id, integration_id, redirect_uri, expires_at) values ($1, $2, $3, $4, 'https://a.test', clock_timestamp())`,
			w.TenantID, []byte(connection), userID, integration)
		name, err := secret.Of(w.TenantID, "connections", connection)
		require.NoError(t, err)
		require.NoError(t, w.ConnectionSecrets().Put(t.Context(), name, `{"version":1,"access":"a"}`))
		return name
	}
	his, _, hers := connect(id(max)), connect(id(max)), connect(id(eve))
	_, err := w.leave(t, "delete-user", w.owner(), id(max), nil)
	require.Nil(t, err)
	_, missing := w.ConnectionSecrets().Get(t.Context(), his)
	require.ErrorIs(t, missing, secret.ErrMissing)
	_, kept := w.ConnectionSecrets().Get(t.Context(), hers)
	require.NoError(t, kept)
	var connections, states int
	require.NoError(t, w.DB.Superuser(t).QueryRow(t.Context(), `select (select count(*) from connections), (select count(*) from connection_states)`).Scan(&connections, &states))
	require.Equal(t, []int{1, 1}, []int{connections, states})
}
