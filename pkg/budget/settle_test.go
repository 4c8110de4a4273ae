package budget_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/budget"
	"github.com/agentplatform/agentplatform/pkg/model"
)

func input(tokens int) model.Usage { return model.Usage{InputTokens: tokens} }

// What was settled once is settled: a turn that is taken up again says its total, also when it knows less.
func TestSettlingTwiceIsSettlingOnce(t *testing.T) {
	w := newWorld(t)
	w.cap(budget.Tenant, w.TenantID, 2*worst)
	turnID := w.start()
	for _, tokens := range []int{0, 150, 150, 0, 100, 150} {
		require.Empty(t, w.settle(turnID, input(tokens)))
	}
	spent, reserved := w.state()
	require.Equal(t, []string{"0.000150", "0.000450"}, []string{spent, reserved})
	w.ended(turnID, 150)
	w.exec(`update thread_turns set status = 'succeeded' where id = $1`, turnID) // and its end, too
	spent, reserved = w.state()
	require.Equal(t, []string{"0.000150", "0.000000"}, []string{spent, reserved})
}

// However a turn ends, its reservation is free, and what it had spent is spent: also when its record does not know.
func TestATurnThatIsGivenUp(t *testing.T) {
	w := newWorld(t)
	w.cap(budget.Tenant, w.TenantID, worst)
	turnID := w.start()
	require.Empty(t, w.settle(turnID, input(150)))
	w.refused()
	w.exec(`update thread_turns set status = 'failed', error = 'given up', finished_at = $2 where id = $1`, turnID, now)
	spent, reserved := w.state()
	require.Equal(t, []string{"0.000150", "0.000000"}, []string{spent, reserved})
	require.Equal(t, "the tenant's monthly budget of 0.0006 USD does not cover another turn", w.refused())
	w.cap(budget.Tenant, w.TenantID, worst+150)
	w.start()
}

// A turn that used more than a turn may by the platform's limits takes the rest from the budget, or ends.
func TestATurnThatCostsMoreThanItReserved(t *testing.T) {
	w := newWorld(t)
	w.cap(budget.Tenant, w.TenantID, 2*worst)
	turnID := w.start()
	require.Empty(t, w.settle(turnID, input(worst))) // another call is set aside
	spent, reserved := w.state()
	require.Equal(t, []string{"0.000600", "0.000200"}, []string{spent, reserved})
	require.Equal(t, "the tenant's monthly budget of 0.0012 USD does not cover another model call", w.settle(turnID, input(2*worst-call+1)))
	spent, reserved = w.state()
	require.Equal(t, []string{"0.001001", "0.000000"}, []string{spent, reserved})
	w.ended(turnID, 2*worst-call+1)
	w.refused()
}

// A cap that is lowered while turns run ends them before their next call, one after the other, until the rest fits.
func TestACapIsLoweredWhileTurnsRun(t *testing.T) {
	w := newWorld(t)
	w.cap(budget.Agent, w.AgentID, 3*worst)
	turns := []string{w.start(), w.start(), w.start()}
	for _, id := range turns {
		require.Empty(t, w.settle(id, input(100)))
	}
	b := w.cap(budget.Agent, w.AgentID, 1000)
	require.Equal(t, []any{"0.000300", "0.001500", "0.000000", 30.0}, []any{b.SpentUSD, b.ReservedUSD, *b.RemainingUSD, *b.Percent})
	require.Equal(t, "the agent's monthly budget of 0.001 USD does not cover another model call", w.settle(turns[0], input(120)))
	w.ended(turns[0], 120)
	require.NotEmpty(t, w.settle(turns[1], input(100)), "1,320 of 1,000")
	w.ended(turns[1], 100)
	require.Empty(t, w.settle(turns[2], input(100)), "820 of 1,000")

	b = w.cap(budget.Agent, w.AgentID, 200) // below what is spent
	require.Equal(t, 160.0, *b.Percent)
	require.NotEmpty(t, w.settle(turns[2], input(100)))
	require.NotEmpty(t, w.refused())
	require.Nil(t, w.set(budget.Agent, w.AgentID, nil, nil))
	require.Empty(t, w.settle(turns[2], input(100)), "there is no budget any more")
	w.start()
}

// A budget that is set while a turn runs counts what the turn had used before, and what it uses then.
func TestABudgetIsYoungerThanTheTurn(t *testing.T) {
	w := newWorld(t)
	w.ended(w.start(), 70)
	turnID, quiet := w.start(), w.start()
	require.Empty(t, w.settle(turnID, input(100)))
	b := w.cap(budget.Space, w.SpaceID, 70+100+call)
	require.Equal(t, "0.000070", b.SpentUSD)
	require.Empty(t, w.settle(turnID, input(100)))
	spent, reserved := w.state()
	require.Equal(t, []string{"0.000170", "0.000200"}, []string{spent, reserved})
	require.Equal(t, "the space's monthly budget of 0.00037 USD does not cover another model call", w.settle(turnID, input(101)))
	w.ended(turnID, 101)
	w.ended(quiet, 30)
	w.meter()
	spent, reserved = w.state()
	require.Equal(t, []string{"0.000201", "0.000000"}, []string{spent, reserved})
}

func TestTokensOfATurn(t *testing.T) {
	w := newWorld(t)
	turnID := w.start()
	used := model.Usage{InputTokens: 40, OutputTokens: 30, CacheReadTokens: 20, CacheWriteTokens: 10}
	require.Empty(t, w.settle(turnID, used))
	w.set(budget.Tenant, w.TenantID, nil, 101)
	require.Empty(t, w.settle(turnID, used))
	w.set(budget.Agent, w.AgentID, nil, 100)
	require.Equal(t, "the turn has used 100 tokens; the agent's budget allows 100", w.settle(turnID, used))
	w.set(budget.Space, w.SpaceID, nil, 50)
	require.Equal(t, "the turn has used 100 tokens; the space's budget allows 50", w.settle(turnID, used))
	require.Zero(t, w.count("budget_reservations"), "tokens need no reservation")
	w.start()
}

// The sweep is behind the trigger: what was written past it holds nothing for ever, and a turn under way keeps what it has.
func TestSweepFreesWhatTheTriggerDidNot(t *testing.T) {
	w := newWorld(t)
	w.cap(budget.Tenant, w.TenantID, 2*worst)
	leaked := w.start()
	running := w.start()
	tx, err := w.super.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `set local session_replication_role = replica`)
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `update thread_turns set status = 'failed', finished_at = now() where id = $1`, leaked)
	require.NoError(t, err)
	require.NoError(t, tx.Commit(t.Context()))
	w.refused()
	w.meter()
	require.Equal(t, 1, w.count("budget_reservations"))
	w.start()
	require.Empty(t, w.settle(running, input(10)))
}

// A verdict belongs to its batch, also when that has to be run twice.
func TestAVerdictIsThatOfTheLastRun(t *testing.T) {
	w := newWorld(t)
	w.set(budget.Tenant, w.TenantID, nil, 10)
	turnID := w.start()
	var b pgx.Batch
	v := book.Settle(&b, turnID, "offline.echo-1", input(10), now)
	require.NoError(t, w.db.App.Once(t.Context(), w.TenantID, &b))
	require.NotNil(t, v.Err())
	w.set(budget.Tenant, w.TenantID, nil, nil)
	require.NoError(t, w.db.App.Once(t.Context(), w.TenantID, &b))
	require.Nil(t, v.Err())
}
