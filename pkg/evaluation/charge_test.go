package evaluation_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/budget"
	"github.com/agentplatform/agentplatform/pkg/evaluator"
)

// capped gives the tenant, its space and its agent budgets that cover everything here.
func (w *world) capped() {
	w.t.Helper()
	ample := "1000"
	for scope, id := range map[budget.Scope]string{budget.Tenant: w.TenantID, budget.Space: w.SpaceID, budget.Agent: w.AgentID} {
		require.NoError(w.t, w.tx(func(tx pgx.Tx) error {
			var c budget.Change
			c.Scope, c.ScopeID = scope, &id
			c.MonthlyUSD.Set, c.MonthlyUSD.Value = true, &ample
			_, err := budget.Set(w.t.Context(), tx, w.TenantID, c, time.Now())
			return err
		}))
	}
}

// spent is what each of the three budgets counts as spent, and nothing is set aside any more.
func (w *world) spent() (micros int) {
	w.t.Helper()
	list, err := budget.List(w.t.Context(), w.db.App.In(w.TenantID), time.Now(), nil, 10)
	require.NoError(w.t, err)
	require.Len(w.t, list, 3)
	for _, b := range list {
		require.Equal(w.t, list[0].SpentUSD, b.SpentUSD, b.Scope)
		require.Equal(w.t, "0.000000", b.ReservedUSD, b.Scope)
	}
	return w.count(`select ($1::numeric * 1000000)::bigint`, list[0].SpentUSD)
}

// What rated a turn counts in the budgets of the turn's tenant, space and agent: with the scores, and once, also where another rating died with them.
func TestTheGradingOfATurnIsCharged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.capped()
	task := w.rated(politeAndShort, "/say Wait, please.")
	before := w.spent()
	require.Equal(t, w.count(`select cost_micros from thread_turns`), before)

	dying := *w.scorer
	ctx, die := context.WithCancel(t.Context())
	dying.Signal = func(at string) {
		if at == "rating graded" {
			die()
		}
	}
	require.Error(t, dying.Score(ctx, task))
	require.Equal(t, before, w.spent(), "no scores, no charge")

	for range 2 {
		require.NoError(t, w.scorer.Score(t.Context(), task))
		graded := w.count(`select grading_cost_micros from thread_turns`)
		require.Positive(t, graded)
		require.Equal(t, before+graded, w.spent())
		require.NoError(t, budget.Meter(t.Context(), w.db.App))
	}

	w.sql(`update agent_templates set evaluators = '[{"type": "length", "maxWords": 2}]'`)
	spent := w.spent()
	task = w.rated(`[{"type": "length", "maxWords": 2}]`, "/say Hi")
	require.NoError(t, w.scorer.Score(t.Context(), evaluator.Task{TenantID: task.TenantID, TurnID: task.TurnID}))
	require.Equal(t, spent+w.count(`select cost_micros from thread_turns where id = $1`, task.TurnID), w.spent(), "no model was asked to grade")
}

// What rated the cases of a run counts in the same budgets, as the run says.
func TestTheGradingOfARunIsCharged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.capped()
	r := w.start(w.evaluation(4, 2, says(2)))
	w.work(r)
	graded := w.count(`select sum(grading_cost_micros) from thread_turns`)
	require.Positive(t, graded)
	require.Equal(t, graded, w.count(`select ($1::numeric * 1000000)::bigint`, w.run(r.ID).GradingCostUSD))
	require.Equal(t, w.count(`select sum(cost_micros) from thread_turns`)+graded, w.spent())
	w.work(r)
	require.Equal(t, w.count(`select sum(cost_micros) from thread_turns`)+graded, w.spent(), "a second call rates nothing")
}
