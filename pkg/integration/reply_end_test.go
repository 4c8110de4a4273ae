package integration_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/integration"
	"github.com/agentplatform/agentplatform/pkg/mail"
)

// A reply that the caller's time may not be enough for is left to the next one.
func TestNothingIsBegunAtTheEnd(t *testing.T) {
	c := newCounter(t)
	turnID, th := c.asked("1", "order-17")
	c.answers(turnID, "One.")
	c.passes(time.Minute)
	within := func(left time.Duration, task integration.ReplyTask) {
		ctx, cancel := context.WithTimeout(t.Context(), left)
		defer cancel()
		require.NoError(t, c.courier.Deliver(ctx, task))
	}
	thread := integration.ReplyTask{TenantID: c.TenantID, ThreadUUID: th}
	within(89*time.Second, thread)
	within(94*time.Second, integration.ReplyTask{}) // the sweep leaves some time more
	require.Zero(t, query[int](c.world, `select attempts from integration_replies`))
	within(3*time.Minute, thread)
	require.Equal(t, []string{"One."}, c.inbox.said())
	turnID, _ = c.asked("2", "order-17")
	c.answers(turnID, "Two.")
	c.passes(time.Minute)
	within(3*time.Minute, integration.ReplyTask{})
	require.Equal(t, []string{"One.", "Two."}, c.inbox.said())
}

// A mail that nobody was asked to send is sent later.
func TestAMailThatWasNotBegun(t *testing.T) {
	w := newWorld(t)
	got := w.wrote(w.create(w.mailbox("support")), "1", "r:1", "Where is it?")
	w.answers(got.TurnID, "On its way.")
	c := w.courier()
	var sent *[]mail.Order
	c.Mail, sent = postOffice(func(mail.Order) error { return nil })
	ctx, cancel := context.WithCancel(t.Context())
	c.Signal = func(point string) {
		if point == "reply claimed" {
			cancel()
		}
	}
	task := integration.ReplyTask{TenantID: w.TenantID, ThreadUUID: *got.Delivery.ThreadUUID}
	require.ErrorIs(t, c.Deliver(ctx, task), context.Canceled)
	require.Empty(t, *sent)
	require.Equal(t, []string{"queued again"}, w.statuses())
	w.passes(time.Minute)
	require.NoError(t, c.Deliver(t.Context(), task))
	require.Len(t, *sent, 1)
	require.Equal(t, []string{"posted"}, w.statuses())
}

// A reply that whoever claims it dies of does not hold up those behind it for ever.
func TestAReplyThatKills(t *testing.T) {
	kill := func(c *counter, th string) {
		dies := *c.courier
		dies.Signal = exits("reply claimed")
		died := make(chan struct{})
		go func() {
			defer close(died)
			_ = dies.Deliver(t.Context(), integration.ReplyTask{TenantID: c.TenantID, ThreadUUID: th})
		}()
		<-died
	}
	for name, c := range map[string]struct {
		dies int
		wait time.Duration
	}{"often": {11, 3 * time.Minute}, "long": {1, 25 * time.Hour}} {
		t.Run(name, func(t *testing.T) {
			w := newCounter(t)
			first, th := w.asked("1", "order-17")
			w.answers(first, "One.")
			second, _ := w.asked("2", "order-17")
			w.answers(second, "Two.")
			for range c.dies {
				kill(w, th)
				w.passes(c.wait)
			}
			require.Equal(t, c.dies, query[int](w.world, `select max(attempts) from integration_replies`))
			w.serve(th)
			require.Equal(t, []string{"Two."}, w.inbox.said())
			require.Equal(t, []string{"unknown", "posted"}, w.statuses())
		})
	}
}

// However late the first try is, it is made.
func TestAReplyThatWaitedLong(t *testing.T) {
	c := newCounter(t)
	turnID, th := c.asked("1", "order-17")
	c.answers(turnID, "One.")
	c.passes(48 * time.Hour)
	c.serve(th)
	require.Equal(t, []string{"One."}, c.inbox.said())
}

// A panic is one reply's own: it is not the end of the others that are posted at the same time.
func TestAReplyThatPanics(t *testing.T) {
	c := newCounter(t)
	turnID, th := c.asked("1", "order-17")
	c.answers(turnID, "One.")
	broken := *c.courier
	broken.Client = &http.Client{Transport: panics{}}
	require.NoError(t, broken.Deliver(t.Context(), integration.ReplyTask{TenantID: c.TenantID, ThreadUUID: th}))
	require.Equal(t, []string{"queued again"}, c.statuses())
	require.Equal(t, "internal error", query[string](c.world, `select error from integration_replies where asked_at is not null`))
	c.passes(time.Minute)
	c.serve(th)
	require.Equal(t, []string{"One."}, c.inbox.said())
}

type panics struct{}

func (panics) RoundTrip(*http.Request) (*http.Response, error) { panic("a bug") }

// What came of a reply is written whatever becomes of the integration's row; and that row's change is none of the integration.
func TestTheIntegrationsComplaintIsApart(t *testing.T) {
	c := newCounter(t)
	c.inbox.answers(func(_ int, out http.ResponseWriter, _ *http.Request) { out.WriteHeader(http.StatusForbidden) })
	before := c.get(c.integration.ID).UpdatedAt
	turnID, th := c.asked("1", "order-17")
	c.answers(turnID, "One.")
	c.exec(`alter table integrations add constraint broken check (error is null)`)
	c.serve(th)
	require.Equal(t, []string{"failed"}, c.statuses())
	c.exec(`alter table integrations drop constraint broken`)
	turnID, _ = c.asked("2", "order-17")
	c.answers(turnID, "Two.")
	c.serve(th)
	require.Contains(t, c.complaint(c.integration), "HTTP status 403")
	c.inbox.answers(nil)
	turnID, _ = c.asked("3", "order-17")
	c.answers(turnID, "Three.")
	c.serve(th)
	require.Empty(t, c.complaint(c.integration))
	require.Equal(t, before, c.get(c.integration.ID).UpdatedAt)
}

// Whoever asked outside learns that there is no answer: of a turn that ended without a word, too, unless another one follows.
func TestATurnWithoutAWord(t *testing.T) {
	for name, said := range map[string]bool{"cancelled": true, "succeeded": true, "interrupted": false} {
		t.Run(name, func(t *testing.T) {
			c := newCounter(t)
			turnID, th := c.asked("1", "order-17")
			c.exec(`update thread_turns set status = $2, lease_until = null, finished_at = clock_timestamp() where id = $1`, turnID, name)
			c.serve(th)
			if !said {
				require.Empty(t, c.inbox.said())
				return
			}
			require.Equal(t, []string{"I could not answer this. Ask again, or look at thread AUTO-1."}, c.inbox.said())

			turnID, _ = c.asked("2", "order-17")
			c.exec(`insert into messages (tenant_id, id, thread_uuid, position, role, body, turn_id, turn_number)
				select tenant_id, gen_random_uuid(), thread_uuid, 100, 'assistant', 'As far as', id, number from thread_turns where id = $1`, turnID)
			c.exec(`update thread_turns set status = $2, lease_until = null, finished_at = clock_timestamp() where id = $1`, turnID, name)
			c.serve(th)
			require.Len(t, c.inbox.said(), 2)
			require.Equal(t, "As far as", c.inbox.said()[1])
		})
	}
}
