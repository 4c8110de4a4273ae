package turn_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	functions "github.com/agentplatform/agentplatform/functions/turn"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// A turn that has been pruned has no steps, and says since when.
func TestPruneTurns(t *testing.T) {
	p := handlertest.New(t)
	w := p.DB.World(t, "acme")
	s := &site{World: w, t: t, db: p.DB}
	_, kept := s.ask("default")
	_, old := s.ask("default")
	_, err := p.DB.Superuser(t).Exec(t.Context(), `insert into turn_steps (tenant_id, turn_id, number, kind, name, status, response)
		select tenant_id, id, 1, 'model', 'm', 'finished', '{"blocks":[]}' from thread_turns`)
	require.NoError(t, err)
	_, err = p.DB.Superuser(t).Exec(t.Context(), `update thread_turns set status = 'failed', started_at = now(), finished_at = now() - case id when $1 then interval '89 days' else interval '91 days' end`, kept)
	require.NoError(t, err)

	member := handlertest.Claims(w, tenant.Member)
	told := func(id string) (turn.Turn, []turn.Step) {
		got, err := handlertest.Call[turn.Turn](t, p, "get-turn", functions.GetTurn, member, map[string]any{"id": id})
		require.Nil(t, err)
		steps, err := handlertest.Call[[][]turn.Step](t, p, "turn-steps", functions.TurnSteps, member, map[string]any{}, got)
		require.Nil(t, err)
		return got, steps[0]
	}
	for range 2 {
		_, err = functions.PruneTurns(p.Env(t, "prune-turns")).Invoke(t.Context(), []byte(`{}`))
		require.NoError(t, err)
		got, steps := told(old)
		require.Empty(t, steps)
		require.NotNil(t, got.StepsPrunedAt)
		require.Equal(t, turn.Failed, got.Status)
		got, steps = told(kept)
		require.Len(t, steps, 1)
		require.Nil(t, got.StepsPrunedAt)
	}
}
