package turn_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/agent"
	"github.com/agentplatform/agentplatform/pkg/agentcore"
	"github.com/agentplatform/agentplatform/pkg/text"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// The dispatcher goes by the agent's own selector, and by its template's where the agent has none.
func TestTheAgentsOwnRuntime(t *testing.T) {
	large, small := &runtime{}, &runtime{}
	s := newSite(t, agentcore.Runtimes{"large": large, "small": small})
	for _, c := range []struct {
		template     string
		own          *string
		large, small int
	}{
		{"large", nil, 1, 0},
		{"large", new("small"), 1, 1},
		{"default", new("large"), 2, 1},
		{"large", new(turn.DefaultRuntime), 2, 1},
		{"small", nil, 2, 2},
	} {
		_, id := s.ask(c.template)
		require.NoError(t, s.db.App.InTenant(t.Context(), s.TenantID, func(tx pgx.Tx) error {
			_, _, err := agent.Update(t.Context(), tx, s.AgentID, agent.Fields{SettingFields: agent.SettingFields{Runtime: text.Patch[string]{Set: true, Value: c.own}}})
			return err
		}))
		require.NoError(t, s.dispatch(id))
		require.Equal(t, []int{c.large, c.small}, []int{len(large.payloads), len(small.payloads)}, "%s, %v", c.template, c.own)
		if c.own != nil && *c.own == turn.DefaultRuntime {
			require.Equal(t, turn.Succeeded, s.turn(id).Status, "it ran in the function")
		}
	}
}
