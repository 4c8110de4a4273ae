package budget_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/agentplatform/agentplatform/pkg/budget"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
)

// pools are connections of their own for 64 at once.
func (w *world) pools() []*postgres.DB {
	pools := make([]*postgres.DB, 8)
	for i := range pools {
		pools[i] = w.db.Open(w.t, w.db.AppURL)
	}
	return pools
}

// 64 turns at once against a cap that fits 10, in each scope: exactly 10 start, and spend exactly the cap.
func TestTurnsThatStartTogetherCannotPassACap(t *testing.T) {
	first := newWorld(t)
	pools := first.pools()
	for _, scope := range []budget.Scope{budget.Tenant, budget.Space, budget.Agent} {
		t.Run(string(scope), func(t *testing.T) {
			w := first.neighbour(strings.ToLower(string(scope)))
			id := map[budget.Scope]string{budget.Tenant: w.TenantID, budget.Space: w.SpaceID, budget.Agent: w.AgentID}[scope]
			w.cap(scope, id, 10*worst+worst-1)
			var mu sync.Mutex
			var started []string
			var refused atomic.Int32
			var ready sync.WaitGroup
			ready.Add(64)
			var g errgroup.Group
			for i := range 64 {
				g.Go(func() error {
					ready.Done()
					ready.Wait()
					turnID, err := w.begin(pools[i%8], w.AgentID, w.SpaceID)
					if err != nil && fault.From(err).Type == fault.BudgetExceeded {
						refused.Add(1)
						return nil
					}
					mu.Lock()
					defer mu.Unlock()
					started = append(started, turnID)
					return err
				})
			}
			require.NoError(t, g.Wait())
			require.Len(t, started, 10)
			require.EqualValues(t, 54, refused.Load())
			require.Equal(t, 10, w.count(`thread_turns where tenant_id = '`+w.TenantID+`'`))
			require.Equal(t, 10, w.count(`threads where tenant_id = '`+w.TenantID+`'`))
			spent, reserved := w.state()
			require.Equal(t, []string{"0.000000", "0.006000"}, []string{spent, reserved})

			w.cap(scope, id, 10*worst)
			for i, turnID := range started {
				g.Go(func() error { return w.end(pools[i%8], turnID, worst) })
			}
			require.NoError(t, g.Wait())
			spent, reserved = w.state()
			require.Equal(t, []string{"0.006000", "0.000000"}, []string{spent, reserved})
			w.refused()
			require.Zero(t, w.count("budget_reservations"))
		})
	}
}

// Turns start, settle, end and are metered, all at once, while the sum is watched: it never passes the cap, and nothing is left over.
func TestTheCapHoldsWhileTurnsComeAndGo(t *testing.T) {
	const cap = 40 * worst
	w := newWorld(t)
	w.cap(budget.Tenant, w.TenantID, cap)
	other := w.agent()
	w.cap(budget.Agent, other, cap/4)
	pools := w.pools()
	watching := make(chan struct{})
	var watcher errgroup.Group
	watcher.Go(func() error {
		for {
			select {
			case <-watching:
				return nil
			default:
			}
			var sums [2]int64
			if err := w.db.App.InTenant(t.Context(), w.TenantID, func(tx pgx.Tx) error {
				return tx.QueryRow(t.Context(), `select a.spent + a.reserved, b.spent + b.reserved from budget_state($1, $3) a, budget_state($2, $3) b`,
					w.TenantID, other, time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)).Scan(&sums[0], &sums[1])
			}); err != nil {
				return err
			}
			if sums[0] > cap || sums[1] > cap/4 {
				t.Errorf("%v is beyond a cap", sums)
			}
			if err := budget.Meter(t.Context(), pools[7]); err != nil {
				return err
			}
		}
	})
	var cost atomic.Int64
	var g errgroup.Group
	for i := range 32 {
		g.Go(func() error {
			for n := range 8 {
				agent := []string{w.AgentID, other}[i%2]
				turnID, err := w.begin(pools[i%7], agent, w.SpaceID)
				if err != nil {
					if fault.From(err).Type == fault.BudgetExceeded {
						continue
					}
					return err
				}
				micros := int64(100 + 50*(n%4))
				var b pgx.Batch
				v := book.Settle(&b, turnID, pgtest.ModelID, model.Usage{InputTokens: int(micros) / 2}, now)
				if err := pools[i%7].Once(t.Context(), w.TenantID, &b); err != nil {
					return err
				}
				if v.Err() != nil {
					t.Error(v.Err())
				}
				if err := w.end(pools[i%7], turnID, micros); err != nil {
					return err
				}
				cost.Add(micros)
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
	close(watching)
	require.NoError(t, watcher.Wait())
	w.meter()
	spent, reserved := w.state()
	require.Equal(t, micros6(int(cost.Load())), spent)
	require.Equal(t, "0.000000", reserved)
	require.Zero(t, w.count("budget_reservations"))
	require.Zero(t, w.count("usage_unmetered"))
}

// Each budget that concerns a turn holds; the one that is shortest is named.
func TestTheStrictestBudgetIsNamed(t *testing.T) {
	w := newWorld(t)
	other, lab := w.agent(), w.space()
	w.cap(budget.Tenant, w.TenantID, 3*worst)
	w.cap(budget.Space, w.SpaceID, 2*worst)
	w.cap(budget.Agent, w.AgentID, worst)
	w.start()
	require.Equal(t, "the agent's monthly budget of 0.0006 USD does not cover another turn", w.refused())
	_, err := w.begin(w.db.App, other, w.SpaceID)
	require.NoError(t, err)
	_, err = w.begin(w.db.App, other, w.SpaceID)
	require.EqualError(t, err, "the space's monthly budget of 0.0012 USD does not cover another turn")
	_, err = w.begin(w.db.App, other, lab)
	require.NoError(t, err)
	_, err = w.begin(w.db.App, other, lab)
	require.EqualError(t, err, "the tenant's monthly budget of 0.0018 USD does not cover another turn")
	globex := w.neighbour("globex")
	globex.start() // nobody else's budget
	require.Equal(t, 3, w.count("budget_reservations"))
}

func TestACapOfNothingStopsEverything(t *testing.T) {
	w := newWorld(t)
	require.Equal(t, 100.0, *w.cap(budget.Agent, w.AgentID, 0).Percent)
	require.Equal(t, "the agent's monthly budget of 0.00 USD does not cover another turn", w.refused())
}

// A model that has no price cannot be held to a cap of money; to one of tokens it can.
func TestAModelWithoutAPrice(t *testing.T) {
	w := newWorld(t)
	w.exec(`update agent_templates set model_id = 'vendor.new-1'`)
	w.start()
	w.set(budget.Agent, w.AgentID, nil, 1000)
	w.start()
	w.cap(budget.Tenant, w.TenantID, 1e6)
	require.Equal(t, "the price of the model vendor.new-1 is not known, so that no turn of it can be covered by a monthly budget", w.refused())

	running := w.neighbour("globex")
	turnID := running.start()
	running.cap(budget.Space, running.SpaceID, 1e6)
	var b pgx.Batch
	v := book.Settle(&b, turnID, "vendor.new-1", model.Usage{InputTokens: 10}, now) // its template was changed meanwhile
	require.NoError(t, w.db.App.Once(t.Context(), running.TenantID, &b))
	require.EqualError(t, v.Err(), "the price of the model vendor.new-1 is not known, and the space's monthly budget counts money")
}

// Without a budget nothing is asked and nothing is locked: neither by who starts, nor by who ends a turn while everything here is locked.
func TestWithoutABudgetNobodyWaits(t *testing.T) {
	w := newWorld(t)
	var b pgx.Batch
	require.NoError(t, book.Reserve(&b, budget.Turn{}, budget.Terms{}, now))
	require.Zero(t, b.Len())
	first := w.start()
	w.ended(first, 10)

	locked, err := w.super.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = locked.Rollback(t.Context()) }()
	var rows int
	_, err = locked.Exec(t.Context(), `select set_config('app.tenant_id', $1, true)`, w.TenantID)
	require.NoError(t, err)
	require.NoError(t, locked.QueryRow(t.Context(), `select meter_usage(10)`).Scan(&rows)) // and does not commit
	require.Equal(t, 1, rows)
	second := w.start()
	require.Empty(t, w.settle(second, model.Usage{InputTokens: 10}))
	w.ended(second, 10)
	require.Zero(t, w.count("budget_reservations"))
}

// The month is that of UTC. A turn that is under way at its end belongs to the next one: its reservation goes along.
func TestTheMonthEnds(t *testing.T) {
	w := newWorld(t)
	tokyo := time.FixedZone("Tokyo", 9*60*60)
	w.at = time.Date(2026, 4, 1, 8, 59, 59, 0, tokyo) // 31 March in UTC
	w.cap(budget.Tenant, w.TenantID, 2*worst)
	w.ended(w.start(), worst)
	late := w.start()
	require.Empty(t, w.settle(late, model.Usage{InputTokens: 50}))
	w.refused()
	b := w.budgets()[0]
	require.Equal(t, []any{"2026-03-01", "0.000650", "0.000550"}, []any{b.Month, b.SpentUSD, b.ReservedUSD})

	w.at = time.Date(2026, 4, 1, 9, 0, 0, 0, tokyo)
	b = w.budgets()[0]
	require.Equal(t, []any{"2026-04-01", "0.000050", "0.000550"}, []any{b.Month, b.SpentUSD, b.ReservedUSD})
	again := w.start()
	w.refused()
	w.ended(late, 60)
	w.meter()
	b = w.budgets()[0]
	require.Equal(t, []any{"0.000060", "0.000600", "0.000540"}, []any{b.SpentUSD, b.ReservedUSD, *b.RemainingUSD})
	w.ended(again, 0)
	w.start()
}
