package thread_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	functions "github.com/agentplatform/agentplatform/functions/thread"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
)

// happened is a page of events as the API gives it.
type happened struct {
	Items []struct {
		Typename string `json:"__typename"`
		TenantID string `json:"tenantId"`
		ThreadID string `json:"threadId"`
		Sequence int
		Message  struct{ ID, Body string }
		Thread   struct{ Title string }
	}
	Last, PrunedBefore int
}

func (w *world) events(a args) (happened, *fault.Error) {
	w.t.Helper()
	return handlertest.Call[happened](w.t, w.p, "thread-events", functions.ThreadEvents, w.caller, a)
}

func TestThreadEvents(t *testing.T) {
	p := handlertest.New(t)
	w, foreign := open(t, p, "acme"), open(t, p, "globex")
	w.thread()
	th := w.thread() // CHAT-2, which Globex has not
	none, err := w.events(args{"threadId": th.ID, "after": 0})
	require.Nil(t, err)
	require.NotNil(t, none.Items)
	require.Equal(t, []int{0, 1}, []int{none.Last, none.PrunedBefore})

	said, err := w.send(args{"threadId": th.ID, "body": "Hello"})
	require.Nil(t, err)
	_, err = w.update(th.ID, args{"title": "T"})
	require.Nil(t, err)
	got, err := w.events(args{"threadId": th.ID, "after": 0})
	require.Nil(t, err)
	require.Len(t, got.Items, 2)
	for i, typename := range []string{"NewMessageEvent", "ThreadUpdateEvent"} {
		e := got.Items[i]
		require.Equal(t, []any{typename, w.TenantID, th.ID, i + 1}, []any{e.Typename, e.TenantID, e.ThreadID, e.Sequence})
	}
	require.Equal(t, said.ID, got.Items[0].Message.ID)
	require.Equal(t, "T", got.Items[1].Thread.Title)
	require.Equal(t, []int{2, 1}, []int{got.Last, got.PrunedBefore})

	for i := range 150 {
		_, err = w.update(th.ID, args{"title": fmt.Sprint(i)})
		require.Nil(t, err)
	}
	for limit, want := range map[any]int{nil: 100, 7: 7, 1000: 150} {
		page, err := w.events(args{"threadId": th.ID, "after": 2, "limit": limit})
		require.Nil(t, err)
		require.Len(t, page.Items, want)
		require.Equal(t, 3, page.Items[0].Sequence)
		require.Equal(t, 152, page.Last)
	}
	for _, bad := range []args{{"limit": 0}, {"limit": 1001}, {"limit": -1}, {"after": -1}} {
		bad["threadId"] = th.ID
		_, err = w.events(bad)
		require.Equal(t, fault.ValidationError, err.Type)
	}
	_, missing := foreign.events(args{"threadId": "CHAT-77", "after": 0})
	require.Equal(t, fault.NotFound, missing.Type)
	_, err = foreign.events(args{"threadId": th.ID, "after": 0})
	require.Equal(t, missing, err)
}

// A client that comes back after the events were pruned is told that, and goes on from there.
func TestPruneThreadEvents(t *testing.T) {
	p := handlertest.New(t)
	w := open(t, p, "acme")
	th := w.thread()
	_, err := w.send(args{"threadId": th.ID, "body": "Hello"})
	require.Nil(t, err)
	_, err = w.update(th.ID, args{"title": "T"})
	require.Nil(t, err)
	_, dbErr := p.DB.Superuser(t).Exec(t.Context(), `update thread_events set created_at = created_at - interval '61 minutes' where sequence = 1;
		update thread_sequences set prune_at = now() - interval '1 second'`)
	require.NoError(t, dbErr)
	_, runErr := functions.PruneThreadEvents(p.Env(t, "prune-thread-events")).Invoke(t.Context(), []byte(`{}`))
	require.NoError(t, runErr)
	got, err := w.events(args{"threadId": th.ID, "after": 0})
	require.Nil(t, err)
	require.Len(t, got.Items, 1)
	require.Equal(t, []int{2, 2, 2}, []int{got.Items[0].Sequence, got.Last, got.PrunedBefore})
}
