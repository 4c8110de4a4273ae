package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestWebhookCallsAndKills kills the platform while webhooks are called: what was accepted has its run, what was not answered makes one when
// it is asked for again with its key, and every run ends well in a thread of its own.
func TestWebhookCallsAndKills(t *testing.T) {
	t.Parallel()
	p := startPlatform(t)
	w := p.as(t, "alice").webhook(t, vars{"rate_limit": 100_000})
	runs := map[string]string{} // by key; "" when the call was not answered
	for round := range 2 {
		answered, unanswered := callUntilKilled(t, w, round)
		p = p.restart(t)
		w.user = p.as(t, "alice")
		for key, id := range answered {
			runs[key] = id
		}
		again := 0
		for _, key := range unanswered {
			a, err := w.call(t, slowCall, "Idempotency-Key: "+key)
			require.NoError(t, err)
			require.Contains(t, []int{http.StatusAccepted, http.StatusOK}, a.status, "%s", a.body)
			if a.status == http.StatusOK {
				again++
			}
			runs[key] = a.get("run_id")
		}
		t.Logf("%d calls answered, %d not, of which %d had made their run", len(answered), len(unanswered), again)
	}
	made := map[string]bool{}
	threads := map[string]bool{}
	for _, r := range w.runs(t) {
		r = w.finished(t, r.ID)
		require.Equal(t, "succeeded", r.Status, r.Error)
		made[r.ID] = true
		threads[*r.ThreadID] = true
	}
	for key, id := range runs {
		require.True(t, made[id], "run %s of call %s", id, key)
	}
	require.Len(t, made, len(runs), "a run for each call")
	require.Len(t, threads, len(runs), "a thread for each run")
	require.Equal(t, fmt.Sprint(len(runs)), w.invocations(t))
	require.Equal(t, threads, w.conversations(t))
}

const slowCall = `{"message":"/slow 15\n/say one two three"}`

// callUntilKilled calls from many clients, each call with a key of its own, and kills the platform under them.
func callUntilKilled(t *testing.T, w *webhook, round int) (answered map[string]string, unanswered []string) {
	const clients, enough = 8, 40
	var mu sync.Mutex
	var all sync.WaitGroup
	answered = map[string]string{}
	var strange []string
	kill := make(chan struct{})
	for c := range clients {
		all.Go(func() {
			for i := 0; ; i++ {
				key := fmt.Sprintf("%d-%d-%d", round, c, i)
				a, err := w.call(t, slowCall, "Idempotency-Key: "+key)
				mu.Lock()
				switch {
				case err != nil:
					unanswered = append(unanswered, key)
				case a.status != http.StatusAccepted:
					strange = append(strange, a.problem())
				default:
					if answered[key] = a.get("run_id"); len(answered) == enough {
						close(kill)
					}
				}
				mu.Unlock()
				if err != nil || a.status != http.StatusAccepted {
					return
				}
			}
		})
	}
	select {
	case <-kill:
	case <-time.After(waitTime):
	}
	w.kill()
	all.Wait()
	require.Empty(t, strange)
	require.GreaterOrEqual(t, len(answered), enough)
	return answered, unanswered
}

// conversations are the threads that webhooks have opened: each a question and its answer.
func (w *webhook) conversations(t testing.TB) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for next := any(nil); ; {
		var page struct {
			ListThreads struct {
				NextToken *string
				Items     []struct {
					ID       string
					Messages struct{ Items []message }
				}
			}
		}
		a := w.query(t, `query ($next: String) { listThreads(filter: {channel: AUTO}, limit: 100, nextToken: $next) { nextToken items { id messages(limit: 10) { items { role body } } } } }`,
			vars{"next": next})
		require.NoError(t, json.Unmarshal(a.Data, &page))
		for _, thread := range page.ListThreads.Items {
			require.Equal(t, []message{{Role: "user", Body: "/slow 15\n/say one two three"}, {Role: "assistant", Body: "one two three"}}, thread.Messages.Items, thread.ID)
			require.True(t, strings.HasPrefix(thread.ID, "AUTO-"))
			found[thread.ID] = true
		}
		if page.ListThreads.NextToken == nil {
			return found
		}
		next = *page.ListThreads.NextToken
	}
}
