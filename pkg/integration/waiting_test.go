package integration_test

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/integration"
	"github.com/agentplatform/agentplatform/pkg/metric"
)

// figures is a sink that keeps what it is told.
type figures struct {
	mutex sync.Mutex
	told  map[string][]float64
}

// watch takes the figures of a test, which has the process to itself.
func watch(t testing.TB) *figures {
	f := &figures{told: map[string][]float64{}}
	metric.SetDefault(f)
	t.Cleanup(func() { metric.SetDefault(nil) })
	return f
}

func (f *figures) Take(e metric.Event) []slog.Attr {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, s := range e.Sets {
		for _, figure := range s.Figures {
			f.told[figure.Name] = append(f.told[figure.Name], figure.Value)
		}
	}
	return nil
}

// take is what was told since it was taken last.
func (f *figures) take(name string) []float64 {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	defer delete(f.told, name)
	return f.told[name]
}

// Each sweep tells how late it is with the oldest reply of all tenants. What is tried again later is not late.
func TestHowLateRepliesAre(t *testing.T) {
	c, told := newCounter(t), watch(t)
	other := c.neighbour("globex")
	theirs := &counter{other.desk(other.create(other.generic(func(n *integration.New) { n.Config = is(`{"replyUrl": "` + c.inbox.URL + `"}`) }))), c.inbox, c.courier}
	swept := func(ctx context.Context) float64 {
		require.NoError(t, c.courier.Deliver(ctx, integration.ReplyTask{}))
		all := told.take("integrations.replies.lateness")
		require.Len(t, all, 1)
		return all[0]
	}
	require.Zero(t, swept(t.Context()), "there is none")
	for _, to := range []*counter{c, theirs} {
		turnID, _ := to.asked("1", "order-17")
		to.answers(turnID, "On its way.")
		require.Zero(t, swept(t.Context()), "whoever has said it may be about to have it posted")
	}
	c.exec(`update integration_replies set next_at = now() - (case tenant_id when $1 then interval '20 minutes' else interval '40 minutes' end)`, c.TenantID)
	short, cancel := context.WithTimeout(t.Context(), time.Minute) // enough to look, and for no reply
	defer cancel()
	require.InDelta(t, 2400, swept(short), 300)
	require.InDelta(t, 2400, swept(short), 300, "it is still there")
	require.Empty(t, c.inbox.said())

	c.inbox.answers(func(_ int, out http.ResponseWriter, _ *http.Request) { out.WriteHeader(http.StatusServiceUnavailable) })
	require.InDelta(t, 2400, swept(t.Context()), 300, "it is told before the work")
	require.Equal(t, []string{"queued again", "queued again"}, c.statuses())
	require.Zero(t, swept(t.Context()), "it is the provider's fault, and it is asked again later")
	c.inbox.answers(nil)
	c.passes(10 * time.Minute)
	require.InDelta(t, 570, swept(t.Context()), 300)
	require.Equal(t, []string{"posted", "posted"}, c.statuses())
	require.Zero(t, swept(t.Context()), "what is over does not wait")
	_, th := c.asked("2", "order-18")
	c.serve(th)
	require.Empty(t, told.take("integrations.replies.lateness"), "whoever posts one thread's replies does not know of the others")
}

// That the figure cannot be told keeps no reply back.
func TestASweepThatCannotTell(t *testing.T) {
	c := newCounter(t)
	turnID, _ := c.asked("1", "order-17")
	c.answers(turnID, "On its way.")
	c.passes(time.Minute)
	c.exec(`drop function lookup_late_replies()`)
	require.ErrorContains(t, c.courier.Deliver(t.Context(), integration.ReplyTask{}), "lookup_late_replies")
	require.Equal(t, []string{"On its way."}, c.inbox.said())
}
