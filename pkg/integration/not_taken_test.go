package integration_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/channel"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/integration"
)

// Of a body that cannot be read nobody knows who has sent it: he is told the same, whether there is an integration or not.
func TestABodyThatCannotBeRead(t *testing.T) {
	d, told := newDesk(t), watch(t)
	large := fault.Invalid("the body is larger than it may be").WithStatus(413)
	for _, id := range []string{d.integration.ID, ident.New(), "no id", ""} {
		_, err := d.receiver.Receive(t.Context(), id, channel.Inbound{Header: func(string) string { return "" }, Now: time.Now()}, large)
		require.Equal(t, large, err, id)
	}
	require.Equal(t, map[integration.Outcome]int{integration.Invalid: 1}, d.outcomes())
	require.Equal(t, []float64{1, 1, 1}, told.take("integrations.unknown"))
}

// A duplicate's body is that of the delivery that was taken in: it is in the log once, however often it comes.
func TestADuplicatesBodyIsNotKept(t *testing.T) {
	d := newDesk(t)
	s := hello("order-17", "Where is it?")
	require.NotNil(t, d.delivered("1", s).Delivery.Body)
	require.NotNil(t, d.newest().Body)
	require.Nil(t, d.delivered("1", s).Delivery.Body)
	logged := d.newest()
	require.Equal(t, []any{integration.Duplicate, len(s.body())}, []any{logged.Outcome, logged.Size})
	require.Nil(t, logged.Body)

	// What is refused at the same moment as it is taken in: the other one's key is there, and is not seen until it is committed.
	d.exec(`update agents set status = 'suspended'`)
	tx, err := d.super.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `insert into delivery_keys (tenant_id, source_id, key) values ($1, $2, 'd:2')`, d.TenantID, d.integration.ID)
	require.NoError(t, err)
	got := make(chan error, 1)
	go func() {
		_, err := d.deliver("2", hello("order-18", "Hello"))
		got <- err
	}()
	waiter := d.db.Superuser(t)
	require.Eventually(t, func() bool {
		var n int
		return waiter.QueryRow(t.Context(), `select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`).Scan(&n) == nil && n > 0
	}, time.Minute, 5*time.Millisecond)
	require.NoError(t, tx.Commit(t.Context()))
	require.NoError(t, <-got)
	logged = d.newest()
	require.Equal(t, []any{integration.Duplicate, "2"}, []any{logged.Outcome, *logged.ProviderID})
	require.Nil(t, logged.Body)
}

// A tenant without a default space is the platform's fault: nothing is refused, nothing is known, and the provider's next attempt is taken.
func TestATenantWithoutADefaultSpace(t *testing.T) {
	d := newDesk(t)
	d.exec(`update spaces set is_default = false`)
	_, err := d.deliver("1", hello("order-17", "Where is it?"))
	require.Equal(t, fault.InternalError, fault.From(err).Type)
	logged := d.newest()
	require.Equal(t, []any{integration.Failed, "internal error"}, []any{logged.Outcome, *logged.Error})
	require.Zero(t, query[int](d.world, `select (select count(*) from delivery_keys) + (select count(*) from integration_replies)`))
	d.exec(`update spaces set is_default = true`)
	require.Equal(t, integration.OK, d.delivered("1", hello("order-17", "Where is it?")).Delivery.Outcome)
	require.Equal(t, [3]int{1, 1, 1}, d.rows())
}
