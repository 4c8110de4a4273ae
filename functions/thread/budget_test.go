package thread_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
)

// offlineTurn is what a turn of the offline model costs at the worst: 25 calls of 100,000 tokens of input, written to the cache at 0.125 dollars a
// million, and 4,096 of output at 0.5.
const offlineTurn = 25 * (12_500 + 2_048)

// 64 messages at once, to threads of their own, against a budget that covers 10 turns: exactly 10 are taken, the others write nothing.
func TestMessagesThatComeTogetherCannotPassABudget(t *testing.T) {
	w := open(t, handlertest.New(t), "acme")
	super := w.p.DB.Superuser(t)
	_, err := super.Exec(t.Context(), `insert into budgets (tenant_id, scope, scope_id, monthly_micros) values ($1, 'tenant', $1, $2)`, w.TenantID, 10*offlineTurn+offlineTurn-1)
	require.NoError(t, err)
	threads := make([]string, 64)
	for i := range threads {
		th, refusal := w.create(args{})
		require.Nil(t, refusal)
		threads[i] = th.ID
	}
	var mu sync.Mutex
	var refused []*fault.Error
	var ready sync.WaitGroup
	ready.Add(len(threads))
	var g errgroup.Group
	for i, id := range threads {
		g.Go(func() error {
			ready.Done()
			ready.Wait()
			if _, refusal := w.send(args{"threadId": id, "body": "Hello", "clientToken": fmt.Sprint(i)}); refusal != nil {
				mu.Lock()
				defer mu.Unlock()
				refused = append(refused, refusal)
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
	require.Len(t, refused, 54)
	for _, r := range refused {
		require.Equal(t, fault.New(fault.BudgetExceeded, "the tenant's monthly budget of 4.000699 USD does not cover another turn"), r)
	}
	var counts [4]int
	require.NoError(t, super.QueryRow(t.Context(), `select (select count(*) from messages), (select count(*) from thread_turns), (select count(*) from budget_reservations),
		(select count(*) from client_tokens)`).Scan(&counts[0], &counts[1], &counts[2], &counts[3]))
	require.Equal(t, [4]int{10, 10, 10, 10}, counts)

	// A refused message's token is free: the same call is taken once there is room.
	_, err = super.Exec(t.Context(), `update budgets set monthly_micros = 64 * $1`, offlineTurn)
	require.NoError(t, err)
	for i, id := range threads {
		_, refusal := w.send(args{"threadId": id, "body": "Hello", "clientToken": fmt.Sprint(i)})
		require.Nil(t, refusal)
	}
	_, refusal := w.send(args{"threadId": threads[0], "body": "it joins the turn that waits"})
	require.Nil(t, refusal)
}
