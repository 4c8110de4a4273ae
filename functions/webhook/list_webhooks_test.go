package webhook_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/turn"
	"github.com/agentplatform/agentplatform/pkg/webhook"
)

// pages reads a list to its end.
func pages[T any](s *site, path string, limit int) (items []T, tokens []string) {
	s.t.Helper()
	query := fmt.Sprintf("?limit=%d", limit)
	for {
		list := read[handler.List[T]](s.t, 200, s.ask("GET", path+query, nil))
		require.LessOrEqual(s.t, len(list.Items), limit)
		items = append(items, list.Items...)
		if list.NextToken == nil {
			return items, tokens
		}
		require.Len(s.t, list.Items, limit)
		tokens = append(tokens, *list.NextToken)
		query = fmt.Sprintf("?limit=%d&next_token=%s", limit, url.QueryEscape(*list.NextToken))
	}
}

func TestListWebhooksPages(t *testing.T) {
	s := newSite(t)
	require.Equal(t, `{"items":[],"next_token":null}`, string(s.ask("GET", "/api/webhooks", nil).Body))
	globex := s.neighbour("globex")
	for i := range 3 {
		globex.hook(fields{"name": fmt.Sprint("hook ", i)})
	}
	want := map[string]bool{}
	for i := range 120 {
		want[s.hook(fields{"name": fmt.Sprintf("hook %02d", i*37%120/2)}).ID] = true // two of each name
	}
	for _, limit := range []int{50, 100, 7, 60} {
		list, tokens := pages[webhook.Webhook](s, "/api/webhooks", limit)
		require.Len(t, tokens, (120-1)/limit)
		require.True(t, slices.IsSortedFunc(list, func(a, b webhook.Webhook) int { return strings.Compare(a.Name+a.ID, b.Name+b.ID) }))
		ids := map[string]bool{}
		for _, w := range list {
			require.Equal(t, s.TenantID, w.TenantID)
			ids[w.ID] = true
		}
		require.Equal(t, want, ids)
	}
	require.Len(t, read[handler.List[webhook.Webhook]](t, 200, s.ask("GET", "/api/webhooks", nil)).Items, 50)
	others, _ := pages[webhook.Webhook](globex, "/api/webhooks", 2)
	require.Len(t, others, 3)

	refusesPages(s, "/api/webhooks", globex)
}

// refusesPages holds a list with more than one item to its bounds, and to its own tokens: none of another list, nor of another tenant's.
func refusesPages(s *site, path string, other *site, foreign ...string) {
	s.t.Helper()
	for _, query := range []string{"limit=0", "limit=-1", "limit=101", "limit=x", "limit=", "limit=1.5", "limit=99999999999999999999"} {
		require.Contains(s.t, refused(s.t, 400, "ValidationError", s.ask("GET", path+"?"+query, nil)).Detail, "limit must be ", query)
	}
	_, tokens := pages[fields](s, path, 1)
	require.NotEmpty(s.t, tokens)
	own := tokens[0]
	swapped := byte('A')
	if own[30] == swapped {
		swapped = 'B'
	}
	forged := own[:30] + string(swapped) + own[31:]
	for _, token := range append(foreign, forged, own+"A", own[:10], "x", "", "%00", strings.Repeat("A", 4000)) {
		refused(s.t, 400, "ValidationError", s.ask("GET", path+"?next_token="+url.QueryEscape(token), nil))
	}
	if other != nil {
		refused(s.t, 400, "ValidationError", other.ask("GET", path+"?next_token="+url.QueryEscape(own), nil))
	}
	require.Equal(s.t, 200, s.ask("GET", path+"?next_token="+url.QueryEscape(own), nil).Status)
}

func TestListWebhookRunsPages(t *testing.T) {
	s := newSite(t)
	w, other := s.hook(fields{"rate_limit": 1000}), s.hook()
	path := "/api/webhooks/" + w.ID + "/runs"
	require.Equal(t, `{"items":[],"next_token":null}`, string(s.ask("GET", path, nil).Body))
	var want []string
	for range 25 {
		want = append(want, s.accepted(w, `{"message":"x"}`).RunID)
	}
	slices.SortFunc(want, func(a, b string) int { return strings.Compare(b, a) }) // by time, at the millisecond of their ids
	for range 3 {
		s.accepted(other, `{"message":"x"}`)
	}
	for _, limit := range []int{1, 10, 24, 25, 100} {
		list, tokens := pages[turn.Run](s, path, limit)
		require.Len(t, tokens, (25-1)/limit)
		require.Equal(t, want, ids(list), limit)
	}
	require.Equal(t, want, ids(read[handler.List[turn.Run]](t, 200, s.ask("GET", path, nil)).Items))
	for _, run := range s.runs(w.ID) {
		require.Equal(t, w.ID, run.WebhookID)
		require.Nil(t, run.ContextSnapshot, "bodies are of one run")
	}

	_, tokens := pages[turn.Run](s, "/api/webhooks/"+other.ID+"/runs", 1)
	_, hooks := pages[webhook.Webhook](s, "/api/webhooks", 1)
	refusesPages(s, path, nil, tokens[0], hooks[0])
}

func ids(runs []turn.Run) (all []string) {
	for _, r := range runs {
		all = append(all, r.ID)
	}
	return all
}
