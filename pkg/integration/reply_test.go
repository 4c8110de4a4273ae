package integration_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/egress"
	"github.com/agentplatform/agentplatform/pkg/integration"
)

// counter is a desk whose conversations are answered.
type counter struct {
	*desk
	inbox   *inbox
	courier *integration.Courier
}

func newCounter(t testing.TB) *counter {
	w, in := newWorld(t), newInbox(t)
	i := w.create(w.generic(func(n *integration.New) { n.Config = is(`{"replyUrl": "` + in.URL + `/answers"}`) }))
	return &counter{w.desk(i), in, w.courier()}
}

func (w *world) courier() *integration.Courier {
	return &integration.Courier{DB: w.db.App, Secrets: integration.NewSecrets(w.store), Client: egress.New(egress.Config{Loopback: true})}
}

// asked is a message that was taken in, and its thread.
func (c *counter) asked(id, conversation string) (turnID, threadUUID string) {
	c.t.Helper()
	got := c.delivered(id, hello(conversation, "Where is it, by delivery "+id+"?"))
	require.NotNil(c.t, got.Delivery.ThreadUUID, "%+v", got.Delivery)
	return got.TurnID, *got.Delivery.ThreadUUID
}

func (c *counter) serve(threadUUID string) {
	c.t.Helper()
	require.NoError(c.t, c.courier.Deliver(c.t.Context(), integration.ReplyTask{TenantID: c.TenantID, ThreadUUID: threadUUID}))
}

func (c *counter) sweep() {
	c.t.Helper()
	require.NoError(c.t, c.courier.Deliver(c.t.Context(), integration.ReplyTask{}))
}

// passes lets time go by for the replies.
func (w *world) passes(d time.Duration) {
	w.t.Helper()
	w.exec(`update integration_replies set next_at = next_at - $1::interval, created_at = created_at - $1::interval, asked_at = asked_at - $1::interval`, d)
}

// said are the texts that arrived.
func (in *inbox) said() (out []string) {
	for _, p := range in.posts() {
		out = append(out, p.Message)
	}
	return out
}

func (w *world) statuses() (all []string) {
	return query[[]string](w, `select coalesce(array_agg(status || case when next_at is null then '' else ' again' end order by created_at), '{}') from integration_replies`)
}

func (w *world) complaint(i integration.Integration) string {
	w.t.Helper()
	if e := w.get(i.ID).Error; e != nil {
		return *e
	}
	return ""
}

func TestAnAnswerGoesOut(t *testing.T) {
	c := newCounter(t)
	turnID, th := c.asked("1", "order-17")
	c.serve(th)
	require.Empty(t, c.inbox.said())
	c.answers(turnID, "On its way.")
	for range 3 {
		c.serve(th)
		c.sweep()
	}
	posts := c.inbox.posts()
	require.Len(t, posts, 1)
	require.Equal(t, post{ID: posts[0].ID, Conversation: "order-17", Message: "On its way.", ThreadID: "AUTO-1"}, posts[0])
	require.Equal(t, posts[0].ID, query[string](c.world, `select external_id from integration_replies where status = 'posted' and finished_at is not null`))
}

// Who asked outside is told that a turn has failed, and not why.
func TestAFailedTurn(t *testing.T) {
	c := newCounter(t)
	turnID, th := c.asked("1", "order-17")
	c.answers(turnID, "")
	c.serve(th)
	posts := c.inbox.posts()
	require.Len(t, posts, 1)
	require.Equal(t, post{ID: posts[0].ID, Conversation: "order-17", Message: "I could not answer this. Ask again, or look at thread AUTO-1.", ThreadID: "AUTO-1", Failed: true}, posts[0])
}

func TestARefusalGoesOut(t *testing.T) {
	c := newCounter(t)
	c.exec(`update agents set status = 'suspended'`)
	got := c.delivered("1", hello("order-17", "Where is it?"))
	for range 2 {
		require.NoError(t, c.courier.Deliver(t.Context(), integration.ReplyTask{TenantID: c.TenantID, ReplyID: got.Refusal}))
	}
	posts := c.inbox.posts()
	require.Len(t, posts, 1)
	require.Equal(t, post{ID: got.Refusal, Conversation: "order-17", Message: "I could not answer this. Ask again later.", Failed: true}, posts[0])
}

// The sweep finds what nobody was told of, over all tenants.
func TestTheSweep(t *testing.T) {
	c := newCounter(t)
	other := c.neighbour("globex")
	theirs := &counter{other.desk(other.create(other.generic(func(n *integration.New) { n.Config = is(`{"replyUrl": "` + c.inbox.URL + `"}`) }))), c.inbox, c.courier}
	for i := range 10 {
		turnID, _ := []*counter{c, theirs}[i%2].asked(fmt.Sprint(i), fmt.Sprint("order-", i))
		c.answers(turnID, fmt.Sprint("answer ", i))
	}
	c.sweep()
	require.Empty(t, c.inbox.said(), "whoever has said it may be about to have it posted")
	c.passes(time.Minute)
	together(2, func(int) error { return c.courier.Deliver(t.Context(), integration.ReplyTask{}) })
	require.Len(t, c.inbox.said(), 10)
}

// Twenty workers at once on the answers of five threads: each is posted once, and in order.
func TestManyWorkers(t *testing.T) {
	c := newCounter(t)
	var threads, want []string
	for n := range 5 {
		var th string
		for m := range 4 {
			var turnID string
			turnID, th = c.asked(fmt.Sprintf("%d-%d", n, m), fmt.Sprint("order-", n))
			c.answers(turnID, fmt.Sprintf("%d-%d", n, m))
			want = append(want, fmt.Sprintf("%d-%d", n, m))
		}
		threads = append(threads, th)
	}
	asked := 0
	c.inbox.answers(func(n int, _ http.ResponseWriter, _ *http.Request) { asked = max(asked, n) })
	for _, err := range together(20, func(i int) error {
		return c.courier.Deliver(t.Context(), integration.ReplyTask{TenantID: c.TenantID, ThreadUUID: threads[i%5]})
	}) {
		require.NoError(t, err)
	}
	for _, th := range threads { // what a worker left to another that had gone already
		c.serve(th)
	}
	require.ElementsMatch(t, want, c.inbox.said())
	next := map[byte]byte{}
	for _, s := range c.inbox.said() {
		require.Equal(t, '0'+next[s[0]], s[2], "in order: %v", c.inbox.said())
		next[s[0]]++
	}
	require.Equal(t, 20, asked, "nobody is asked twice")
}

// Whoever dies anywhere leaves it to the next: the receiver, which knows each answer by its id, has it once.
func TestTheCourierDies(t *testing.T) {
	for _, point := range []string{"reply claimed", "reply posted", "reply finished"} {
		t.Run(point, func(t *testing.T) {
			c := newCounter(t)
			first, th := c.asked("1", "order-17")
			c.answers(first, "One.")
			second, _ := c.asked("2", "order-17")
			c.answers(second, "Two.")
			dies := *c.courier
			died := make(chan struct{})
			go func() {
				defer close(died)
				dies.Signal = exits(point)
				_ = dies.Deliver(t.Context(), integration.ReplyTask{TenantID: c.TenantID, ThreadUUID: th})
				t.Errorf("it came past %s", point)
			}()
			<-died
			c.serve(th)
			if point == "reply finished" {
				require.Equal(t, []string{"One.", "Two."}, c.inbox.said())
				return
			}
			require.LessOrEqual(t, len(c.inbox.said()), 1, "whoever holds it may be at it")
			c.passes(3 * time.Minute)
			c.sweep()
			require.Equal(t, []string{"One.", "Two."}, c.inbox.said())
			require.Equal(t, []string{"posted", "posted"}, c.statuses())
		})
	}
}

func TestTheProviderWantsToBeLeftAlone(t *testing.T) {
	c := newCounter(t)
	first, th := c.asked("1", "order-17")
	c.answers(first, "One.")
	second, _ := c.asked("2", "order-17")
	c.answers(second, "Two.")
	c.inbox.answers(func(n int, out http.ResponseWriter, _ *http.Request) {
		if n == 1 {
			out.Header().Set("Retry-After", "300")
			out.WriteHeader(http.StatusTooManyRequests)
		}
	})
	c.serve(th)
	require.Empty(t, c.inbox.said(), "the second does not overtake the first")
	require.Equal(t, []string{"queued again", "queued again"}, c.statuses())
	c.passes(4 * time.Minute)
	c.sweep()
	c.serve(th)
	require.Empty(t, c.inbox.said())
	require.Zero(t, query[int](c.world, `select count(*) from integration_replies where next_at < clock_timestamp()`), "the sweep does not look at what waits behind it")
	c.passes(2 * time.Minute)
	c.sweep()
	require.Equal(t, []string{"One.", "Two."}, c.inbox.said())
}

// What the provider refuses for good is over at once, the integration says why, and the next success takes that back.
func TestTheProviderRefuses(t *testing.T) {
	c := newCounter(t)
	for n, status := range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusGone, http.StatusUnprocessableEntity} {
		c.inbox.answers(func(_ int, out http.ResponseWriter, _ *http.Request) { out.WriteHeader(status) })
		turnID, th := c.asked(fmt.Sprint(n), "order-17")
		c.answers(turnID, "One.")
		c.serve(th)
		require.Contains(t, c.complaint(c.integration), fmt.Sprint("HTTP status ", status))
	}
	require.Equal(t, []string{"failed", "failed", "failed", "failed", "failed"}, c.statuses())
	c.inbox.answers(nil)
	turnID, th := c.asked("last", "order-17")
	c.answers(turnID, "Two.")
	c.serve(th)
	require.Equal(t, []string{"Two."}, c.inbox.said())
	require.Empty(t, c.complaint(c.integration))
}

// Down, or without an answer: it is tried again, later and later, and given up within a day.
func TestTheProviderIsDown(t *testing.T) {
	c := newCounter(t)
	turnID, th := c.asked("1", "order-17")
	c.answers(turnID, "One.")
	tries := 0
	c.inbox.answers(func(_ int, out http.ResponseWriter, _ *http.Request) {
		tries++
		out.WriteHeader(http.StatusInternalServerError)
	})
	for range 12 {
		c.serve(th)
		c.passes(2*time.Hour + 10*time.Minute)
	}
	require.Equal(t, 10, tries)
	require.Equal(t, []string{"unknown"}, c.statuses(), "it may have arrived")

	c.inbox.Close()
	turnID, th = c.asked("2", "order-17")
	c.answers(turnID, "Two.")
	for range 30 {
		c.serve(th)
		c.passes(2*time.Hour + 10*time.Minute)
	}
	require.Equal(t, []string{"unknown", "failed"}, c.statuses(), "it was not reached, so it has not arrived")
	require.Less(t, query[int](c.world, `select attempts from integration_replies order by created_at desc limit 1`), 13)
}

// The answer was posted, and nobody learnt it: the same again, under the same id, is the receiver's one.
func TestTheProvidersAnswerIsLost(t *testing.T) {
	c := newCounter(t)
	turnID, th := c.asked("1", "order-17")
	c.answers(turnID, "One.")
	c.inbox.answers(func(n int, out http.ResponseWriter, _ *http.Request) {
		if n == 1 { // taken, as a handler that dies behind its commit
			out.(*status).ResponseWriter.WriteHeader(http.StatusBadGateway)
		}
	})
	c.serve(th)
	require.Equal(t, []string{"One."}, c.inbox.said())
	require.Equal(t, []string{"queued again"}, c.statuses())
	c.passes(time.Minute)
	c.sweep()
	require.Equal(t, []string{"One."}, c.inbox.said())
	require.Equal(t, []string{"posted"}, c.statuses())
}

// A provider that does not answer in time holds nobody else up for ever, and what it may have is not known.
func TestTheProviderIsSlow(t *testing.T) {
	c := newCounter(t)
	turnID, th := c.asked("1", "order-17")
	c.answers(turnID, "One.")
	arrived, release := make(chan struct{}), make(chan struct{})
	c.inbox.answers(func(n int, out http.ResponseWriter, r *http.Request) {
		if n == 1 {
			close(arrived)
			<-release
			out.WriteHeader(http.StatusGatewayTimeout)
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = c.courier.Deliver(ctx, integration.ReplyTask{TenantID: c.TenantID, ThreadUUID: th})
	}()
	<-arrived
	c.serve(th) // another worker leaves it alone
	require.Empty(t, c.inbox.said())
	cancel()
	<-ended
	close(release)
	require.Equal(t, []string{"queued again"}, c.statuses(), "what came of it is written although the time was over")
	c.passes(time.Minute)
	c.sweep()
	require.Equal(t, []string{"One."}, c.inbox.said())
}

func TestTheIntegrationIsNotThereAnyMore(t *testing.T) {
	for name, end := range map[string]func(c *counter){
		"disabled": func(c *counter) { c.exec(`update integrations set enabled = false`) },
		"deleted":  func(c *counter) { c.exec(`delete from integrations`) },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCounter(t)
			turnID, th := c.asked("1", "order-17")
			c.answers(turnID, "One.")
			end(c)
			c.serve(th)
			require.Empty(t, c.inbox.said())
			require.Equal(t, []string{"failed"}, c.statuses())
		})
	}
}

// An integration without an address for answers keeps them in its threads.
func TestAnswersThatStayHere(t *testing.T) {
	d := newDesk(t)
	got := d.delivered("1", hello("order-17", "Where is it?"))
	d.answers(got.TurnID, "On its way.")
	require.NoError(t, d.courier().Deliver(t.Context(), integration.ReplyTask{TenantID: d.TenantID, ThreadUUID: *got.Delivery.ThreadUUID}))
	require.Equal(t, []string{"posted"}, d.statuses())
	require.Empty(t, d.complaint(d.integration))
}
