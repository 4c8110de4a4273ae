package turn_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// held is how many turns hold a reservation, and how many are in the usage.
func (w *world) held() (reservations, metered int) {
	w.t.Helper()
	require.NoError(w.t, w.db.Superuser(w.t).QueryRow(w.t.Context(), `select (select count(*) from budget_reservations), (select coalesce(sum(turns), 0) from usage_unmetered)`).
		Scan(&reservations, &metered))
	return reservations, metered
}

// However a turn ends, its reservation is free with its end, and it is in the usage once.
func TestEveryEndFreesTheReservation(t *testing.T) {
	stuck := script(func(ctx context.Context, _ model.Request, _ model.Stream) (model.Response, error) {
		<-ctx.Done()
		return model.Response{}, ctx.Err()
	})
	ended := map[string]struct {
		model model.Model
		end   func(w *world, turnID string)
		want  turn.Status
	}{
		"succeeded": {script(echo), func(w *world, turnID string) { w.run(turnID) }, turn.Succeeded},
		"failed": {script(func(context.Context, model.Request, model.Stream) (model.Response, error) {
			return model.Response{}, &model.Error{Message: "no"}
		}), func(w *world, turnID string) { w.run(turnID) }, turn.Failed},
		"died": {stuck, func(w *world, turnID string) {
			for range 3 {
				w.die(turnID, "claimed")
				w.expireLeases()
				reserved, _ := w.held()
				require.Equal(w.t, 1, reserved, "it goes on")
			}
			w.run(turnID)
		}, turn.Failed},
		"handed back": {stuck, func(w *world, turnID string) {
			ctx, stop := context.WithCancel(w.t.Context())
			w.runner.Signal = func(string) { stop() }
			require.NoError(w.t, w.runner.Run(ctx, turn.Dispatch{TenantID: w.TenantID, TurnID: turnID}))
			reserved, metered := w.held()
			require.Equal(w.t, []int{1, 0}, []int{reserved, metered}, "it goes on")
			w.runner.Signal, w.runner.Model = nil, script(echo)
			w.run(turnID)
		}, turn.Succeeded},
		"given up": {stuck, func(w *world, turnID string) {
			w.tx(func(tx pgx.Tx) error {
				_, err := turn.GiveUp(w.t.Context(), tx, turnID, "too late")
				return err
			})
		}, turn.Failed},
		"cancelled": {stuck, func(w *world, turnID string) {
			w.tx(func(tx pgx.Tx) error {
				_, err := turn.Cancel(w.t.Context(), tx, w.TenantID, turnID)
				return err
			})
		}, turn.Cancelled},
	}
	for name, c := range ended {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.model)
			_, err := w.db.Superuser(t).Exec(t.Context(), `insert into budgets (tenant_id, scope, scope_id, monthly_micros) values ($1, 'tenant', $1, 400000)`, w.TenantID) // one turn
			require.NoError(t, err)
			asked := w.ask(w.open().ID, "Hello")
			reserved, _ := w.held()
			require.Equal(t, 1, reserved)
			_, err = w.send(w.open().ID, "Hello", turn.Enqueue)
			require.Equal(t, fault.BudgetExceeded, fault.From(err).Type)
			c.end(w, asked.TurnID)
			require.Equal(t, c.want, w.turn(asked.TurnID).Status)
			reserved, metered := w.held()
			require.Equal(t, []int{0, 1}, []int{reserved, metered})
			w.ask(w.open().ID, "Hello again")
		})
	}
}

// A turn that uses tools for ever is stopped by its cap on tokens, and by a cap of money that is lowered meanwhile; what it used stays used, once,
// also when it died in between.
func TestACapThatIsMetLater(t *testing.T) {
	for name, c := range map[string]struct{ budget, meanwhile, reason string }{
		"tokens": {`insert into budgets (tenant_id, scope, scope_id, monthly_micros, tokens_per_turn) values ($1, 'agent', $2, 1000000, 45)`, ``,
			"the turn has used 45 tokens; the agent's budget allows 45"},
		"money": {`insert into budgets (tenant_id, scope, scope_id, monthly_micros) values ($1, 'agent', $2, 1000000)`, `update budgets set monthly_micros = 100`,
			"the agent's monthly budget of 0.0001 USD does not cover another model call"},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			w := newWorld(t, nil)
			super := w.db.Superuser(t)
			_, err := super.Exec(t.Context(), c.budget, w.TenantID, w.AgentID)
			require.NoError(t, err)
			w.runner.Model = script(func(context.Context, model.Request, model.Stream) (model.Response, error) {
				if calls++; calls == 3 && c.meanwhile != "" {
					_, err := super.Exec(t.Context(), c.meanwhile)
					require.NoError(t, err)
				}
				return callTool("read_thread", `{"threadId":"CHAT-1"}`), nil // 15 tokens
			})
			asked := w.ask(w.open().ID, "Hello")
			w.die(asked.TurnID, "tools finished")
			w.expireLeases()
			w.run(asked.TurnID)
			require.Equal(t, 3, calls)
			ended := w.turn(asked.TurnID)
			require.Equal(t, turn.Failed, ended.Status)
			require.Equal(t, c.reason, *ended.Error)
			reserved, metered := w.held()
			require.Equal(t, []int{0, 1}, []int{reserved, metered})
			var tokens, micros int
			require.NoError(t, super.QueryRow(t.Context(), `select input_tokens + output_tokens, cost_micros from usage_unmetered`).Scan(&tokens, &micros))
			require.Equal(t, []int{45, 11}, []int{tokens, micros}, "3 × (10 × 0.1 + 5 × 0.5), rounded")
		})
	}
}

// What cannot be repeated within the budget is not.
func TestRetryNeedsItsBudget(t *testing.T) {
	w := newWorld(t, script(echo))
	th := w.open()
	asked := w.ask(th.ID, "Hello")
	retry := func() error {
		return w.db.App.InTenant(t.Context(), w.TenantID, func(tx pgx.Tx) error {
			_, err := turn.Retry(t.Context(), tx, w.TenantID, asked.TurnID)
			return err
		})
	}
	w.tx(func(tx pgx.Tx) error {
		_, err := turn.Cancel(t.Context(), tx, w.TenantID, asked.TurnID)
		return err
	})
	super := w.db.Superuser(t)
	_, err := super.Exec(t.Context(), `insert into budgets (tenant_id, scope, scope_id, monthly_micros) values ($1, 'agent', $2, 300000)`, w.TenantID, w.AgentID)
	require.NoError(t, err)
	require.Equal(t, fault.BudgetExceeded, fault.From(retry()).Type)
	_, err = super.Exec(t.Context(), `update budgets set monthly_micros = 400000`)
	require.NoError(t, err)
	require.NoError(t, retry())
	reserved, _ := w.held()
	require.Equal(t, 1, reserved)
}
