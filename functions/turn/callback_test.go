package turn_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	functions "github.com/agentplatform/agentplatform/functions/turn"
	"github.com/agentplatform/agentplatform/pkg/callback"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// Who cancels a turn that a workflow waits for has the workflow told; no other turn's end costs a call.
func TestCancellingATurnThatAWorkflowWaitsFor(t *testing.T) {
	p := handlertest.New(t)
	w := p.DB.World(t, "acme")
	s := &site{World: w, t: t, db: p.DB}
	_, awaited := s.ask("default")
	_, plain := s.ask("default")
	require.NoError(t, p.DB.App.InTenant(t.Context(), w.TenantID, func(tx pgx.Tx) error {
		_, err := callback.Add(t.Context(), tx, callback.Callback{TenantID: w.TenantID, Token: "token", TurnID: awaited})
		return err
	}))
	cancel := func(id string) {
		got, err := handlertest.Call[turn.Turn](t, p, "cancel-turn", functions.CancelTurn, handlertest.Claims(w, tenant.Member), map[string]any{"id": id})
		require.Nil(t, err)
		require.Equal(t, turn.Cancelled, got.Status)
	}
	cancel(plain)
	require.Empty(t, p.Invoked())
	cancel(awaited)
	require.Equal(t, []string{"answer-callbacks"}, p.Invoked())
}

// Nor does the end of a turn that ran: its runner says so where there is a callback, and only there.
func TestTheEndOfATurnThatAWorkflowWaitsFor(t *testing.T) {
	p := handlertest.New(t)
	w := p.DB.World(t, "acme")
	s := &site{World: w, t: t, db: p.DB}
	var told []string
	runner := turn.NewRunner(p.DB.App, s, p, func(context.Context, string, string) error { return nil })
	runner.Answer = func(_ context.Context, tenantID, callbackID string) error {
		require.Equal(t, w.TenantID, tenantID)
		told = append(told, callbackID)
		return nil
	}
	run := func(awaited bool) (added callback.Added) {
		_, id := s.ask("default")
		if awaited {
			require.NoError(t, p.DB.App.InTenant(t.Context(), w.TenantID, func(tx pgx.Tx) (err error) {
				added, err = callback.Add(t.Context(), tx, callback.Callback{TenantID: w.TenantID, Token: "token-" + ident.New(), TurnID: id})
				return err
			}))
		}
		require.NoError(t, runner.Run(t.Context(), turn.Dispatch{TenantID: w.TenantID, TurnID: id}))
		require.Equal(t, turn.Succeeded, s.turn(id).Status)
		return added
	}
	run(false)
	require.Empty(t, told)
	added := run(true)
	require.Equal(t, []string{added.ID}, told)
}
