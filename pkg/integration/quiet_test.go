package integration_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/channel"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/integration"
)

// What people say to one another where the app only listens is not kept, and uses up nothing of what may be said to the agent.
func TestWhatIsSaidToOthers(t *testing.T) {
	d := newChannelDesk(t)
	d.exec(`update integrations set rate_limit = 2`)
	for i := range 20 {
		root := ""
		if i%2 == 1 {
			root = "1700000000.000001"
		}
		got, err := d.hear(i, fmt.Sprintf("1700000001.%06d", i), root, "between us")
		require.NoError(t, err)
		require.Equal(t, integration.OK, got.Delivery.Outcome)
		require.Empty(t, got.Delivery.ID+got.TurnID)
	}
	require.Empty(t, d.outcomes())
	first, err := d.hear(100, "1700000002.000001", "", "<@U0BOT> Where is it?")
	require.NoError(t, err)
	require.NotEmpty(t, first.TurnID)
	require.NotNil(t, d.newest().Body)
	next, err := d.hear(101, "1700000002.000002", "1700000002.000001", "And when does it come?")
	require.NoError(t, err)
	require.Equal(t, first.Delivery.ThreadID, next.Delivery.ThreadID)
	require.Equal(t, map[integration.Outcome]int{integration.OK: 2}, d.outcomes())
	_, err = d.hear(102, "1700000002.000003", "1700000002.000001", "Hello?")
	require.ErrorContains(t, err, "limit of 2 deliveries a minute")
	_, err = d.hear(103, "1700000003.000001", "", "between us")
	require.NoError(t, err, "Slack is not told to wait with the channel")

	d.exec(`update integrations set rate_limit = 3`)
	_, err = d.hear(105, "no time", "", "between us")
	refused(t, err, "the event has no ts")
	logged := d.newest()
	require.Equal(t, integration.Invalid, logged.Outcome)
	require.Nil(t, logged.Body)
	d.exec(`update integrations set enabled = false`)
	_, err = d.hear(104, "1700000003.000002", "", "between us")
	require.NoError(t, err)
	require.Equal(t, map[integration.Outcome]int{integration.OK: 2, integration.RateLimited: 1, integration.Invalid: 1}, d.outcomes())
}

// There is no row of what says nothing to the agent: it is counted, as what comes for nobody is.
func TestWhatIsNotTakenInIsCounted(t *testing.T) {
	d, told := newChannelDesk(t), watch(t)
	for i := range 3 {
		_, err := d.hear(i, fmt.Sprintf("1700000001.%06d", i), "", "between us")
		require.NoError(t, err)
	}
	d.exec(`update integrations set enabled = false`)
	_, err := d.hear(3, "1700000001.000003", "1700000001.000001", "between us")
	require.NoError(t, err)
	d.exec(`update integrations set enabled = true`)
	require.Equal(t, []float64{1, 1, 1, 1}, told.take("integrations.ignored"))
	require.Empty(t, d.outcomes())

	_, err = d.hear(4, "1700000002.000001", "", "<@U0BOT> Where is it?")
	require.NoError(t, err)
	_, err = d.hear(5, "no time", "", "between us")
	refused(t, err, "the event has no ts")
	_, err = d.receiver.Receive(t.Context(), d.integration.ID, signed("wrong", "1", time.Now(), nil), nil)
	require.Equal(t, integration.ErrSignature, err)
	require.Empty(t, told.take("integrations.ignored"), "those are in the log")
	require.Empty(t, told.take("integrations.unknown"))
	_, err = d.receiver.Receive(t.Context(), ident.New(), signed(signing, "1", time.Now(), nil), nil)
	require.Equal(t, integration.ErrSignature, err)
	require.Equal(t, []float64{1}, told.take("integrations.unknown"))
	require.Empty(t, told.take("integrations.ignored"))
}

// A conversation that went between the two looks at it is nobody's either: what was said in it is not kept.
func TestAConversationThatIsGone(t *testing.T) {
	d := newDesk(t)
	logged := integration.Arrived(d.TenantID, integration.Slack, nil)
	logged.IntegrationID = &d.integration.ID
	logged.Keep([]byte("between us"))
	got, err := integration.Take(t.Context(), d.db.App, integration.Taking{Integration: d.integration, Delivery: logged, Said: channel.Said{Key: "C111/1", Body: "between us", Address: json.RawMessage(`{}`)}})
	require.NoError(t, err)
	require.Equal(t, integration.OK, got.Delivery.Outcome)
	require.Nil(t, d.newest().Body)
}

// While the secrets cannot be read nobody knows who delivers: strangers neither fill the log nor have the store asked each time.
func TestStrangersWhileTheStoreIsDown(t *testing.T) {
	d := newDesk(t)
	cut := errors.New("the line is cut")
	var reads atomic.Int32
	receiver := integration.NewReceiver(d.db.App, integration.NewSecrets(counting{down{cut}, &reads}))
	for range 100 {
		_, err := receiver.Receive(t.Context(), d.integration.ID, signed("wrong", "1", time.Now(), hello("a", "b").body()), nil)
		require.ErrorIs(t, err, cut)
	}
	require.Equal(t, map[integration.Outcome]int{integration.Failed: 60}, d.outcomes())
	require.Less(t, reads.Load(), int32(50))
}
