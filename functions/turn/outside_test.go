package turn_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// What is said in a conversation outside is posted there: its runner starts the function that does, and for no other thread.
func TestATurnOfAConversationOutside(t *testing.T) {
	s := newSite(t, nil)
	_, plain := s.ask(turn.DefaultRuntime)
	require.NoError(t, s.dispatch(plain))
	require.NotContains(t, s.invoked, turn.DeliverReplies)

	th, id := s.ask(turn.DefaultRuntime)
	integration, super := ident.New(), s.db.Superuser(t)
	_, err := super.Exec(t.Context(), `insert into integrations (tenant_id, id, name, provider, agent_id, created_by) values ($1, $2, 'Slack', 'slack', $3, $4)`, s.TenantID, integration, s.AgentID, s.UserID)
	require.NoError(t, err)
	_, err = super.Exec(t.Context(), `insert into integration_threads (tenant_id, integration_id, key, thread_uuid, address) values ($1, $2, 'c', $3, '{}')`, s.TenantID, integration, th.UUID)
	require.NoError(t, err)
	require.NoError(t, s.dispatch(id))
	require.Equal(t, turn.Succeeded, s.turn(id).Status)
	require.Contains(t, s.invoked, turn.DeliverReplies)
}
