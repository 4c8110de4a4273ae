package integration_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/integration"
)

func TestReplay(t *testing.T) {
	d := newDesk(t)
	d.exec(`update agents set status = 'suspended'`)
	first := d.delivered("1", hello("order-17", "Where is it?"))
	require.Equal(t, integration.Failed, first.Delivery.Outcome)
	d.exec(`update agents set status = 'active'`)
	for n := range 2 { // an operator means it, each time
		again, err := integration.Replay(t.Context(), d.db.App, first.Delivery.ID)
		require.NoError(t, err)
		require.Equal(t, integration.OK, again.Delivery.Outcome)
		require.Equal(t, first.Delivery.ID, *again.Delivery.ReplayOf)
		require.Equal(t, "AUTO-1", *again.Delivery.ThreadID)
		require.NotEmpty(t, again.TurnID)
		require.Len(t, d.messages("AUTO-1"), n+1)
	}
	require.Equal(t, integration.Duplicate, d.delivered("1", hello("order-17", "Where is it?")).Delivery.Outcome)

	_, err := d.receiver.Receive(t.Context(), d.integration.ID, signed("wrong", "2", first.Delivery.ReceivedAt.Time, hello("a", "b").body()), nil)
	require.Error(t, err)
	_, err = integration.Replay(t.Context(), d.db.App, d.newest().ID)
	refused(t, err, "the body of the delivery was not kept")
	for _, id := range []string{ident.New(), "no id"} {
		_, err = integration.Replay(t.Context(), d.db.App, id)
		require.Equal(t, fault.Missing("delivery"), err)
	}
}

// What the platform failed to take in is known by nothing. An operator has it taken in, and then the provider's own next try comes.
func TestTheProviderTriesAfterAReplay(t *testing.T) {
	d := newDesk(t)
	d.exec(`alter table integration_threads add constraint broken check (key <> 'order-17')`)
	_, err := d.deliver("1", hello("order-17", "Where is it?"))
	require.Error(t, err)
	d.exec(`alter table integration_threads drop constraint broken`)
	again, err := integration.Replay(t.Context(), d.db.App, d.newest().ID)
	require.NoError(t, err)
	require.Equal(t, integration.OK, again.Delivery.Outcome)
	require.Equal(t, integration.Duplicate, d.delivered("1", hello("order-17", "Where is it?")).Delivery.Outcome)
	require.Len(t, d.messages("AUTO-1"), 1)
}

// A task tracker's delivery becomes an event of its own again, as verified as it was.
func TestReplayOfATaskTrackersDelivery(t *testing.T) {
	d := newDesk(t)
	delivery, hook := ident.New(), ident.New()
	d.exec(`insert into deliveries (tenant_id, id, provider, webhook_id, outcome, event, provider_id, size, sha256, body, duration_us)
		values ($1, $2, 'linear', $3, 'ok', 'Issue', 'l-1', 2, '\x00', '{}', 1)`, d.TenantID, delivery, hook)
	d.exec(`insert into task_events (tenant_id, id, webhook_id, provider, verified, status, next_at) values ($1, $2, $3, 'linear', true, 'done', null)`, d.TenantID, delivery, hook)
	again, err := integration.Replay(t.Context(), d.db.App, delivery)
	require.NoError(t, err)
	require.Equal(t, again.Delivery.ID, again.TaskEvent)
	require.True(t, query[bool](d.world, `select verified and body = '{}' and status = 'queued' and webhook_id = $2 from task_events where id = $1`, again.TaskEvent, hook))
	require.Equal(t, delivery, query[string](d.world, `select replay_of::text from deliveries where id = $1`, again.Delivery.ID))
}
