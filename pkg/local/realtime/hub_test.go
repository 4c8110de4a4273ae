package realtime

import (
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"go.uber.org/goleak"

	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func chunk(tenantID, threadID string, n int) publish.StreamChunk {
	return publish.StreamChunk{TenantID: tenantID, ThreadID: threadID, Sequence: n, MessageID: "m", Chunk: strconv.Itoa(n)}
}

func number(t testing.TB, event json.RawMessage) int {
	var c struct{ Chunk string }
	require.NoError(t, json.Unmarshal(event, &c))
	n, err := strconv.Atoi(c.Chunk)
	require.NoError(t, err)
	return n
}

func TestFeedsAreTheSDLs(t *testing.T) {
	sdl, err := gqlparser.LoadSchema(&ast.Source{Input: schema.Prelude}, &ast.Source{Input: schema.SDL})
	require.NoError(t, err)
	for _, field := range sdl.Subscription.Fields {
		if directive := field.Directives.ForName("aws_subscribe"); directive != nil {
			f, ok := feeds[field.Name]
			require.True(t, ok, field.Name)
			require.Equal(t, string(f.topic), directive.Arguments.ForName("mutations").Value.Children[0].Value.Raw)
			require.NotNil(t, field.Arguments.ForName(f.subject))
		}
	}
	for name := range feeds {
		require.NotNil(t, sdl.Subscription.Fields.ForName(name), name)
	}
}

func TestAFilterMustNameTenantAndSubject(t *testing.T) {
	for _, filter := range []map[string]any{
		nil,
		{"threadId": "CHAT-1"},
		{"tenantId": "t1"},
		{"tenantId": "", "threadId": "CHAT-1"},
		{"tenantId": "t1", "threadId": 7},
		{"tenantId": "t1", "agentId": "a1"},
	} {
		_, err := newListener("onThreadEvent", filter, nil)
		require.Error(t, err, "%v", filter)
	}
	_, err := newListener("onEverything", map[string]any{"tenantId": "t1", "threadId": "CHAT-1"}, nil)
	require.Error(t, err)
	_, err = newListener("onAgentActivity", map[string]any{"tenantId": "t1", "agentId": "a1"}, nil)
	require.NoError(t, err)
}

func TestHubDeliversByTopicTenantSubjectAndRest(t *testing.T) {
	hub := NewHub()
	got := map[string]int{}
	listen := func(name, field string, filter map[string]any) {
		l, err := newListener(field, filter, func(json.RawMessage) { got[name]++ })
		require.NoError(t, err)
		hub.add(l, func() {})
	}
	listen("mine", "onThreadEvent", map[string]any{"tenantId": "t1", "threadId": "CHAT-1"})
	listen("mine, again", "onThreadEvent", map[string]any{"tenantId": "t1", "threadId": "CHAT-1"})
	listen("the last chunk", "onThreadEvent", map[string]any{"tenantId": "t1", "threadId": "CHAT-1", "done": true})
	listen("other thread", "onThreadEvent", map[string]any{"tenantId": "t1", "threadId": "CHAT-2"})
	listen("other tenant", "onThreadEvent", map[string]any{"tenantId": "t2", "threadId": "CHAT-1"})
	listen("agent", "onAgentActivity", map[string]any{"tenantId": "t1", "agentId": "CHAT-1"})

	require.NoError(t, hub.Publish(t.Context(), chunk("t1", "CHAT-1", 1)))
	require.Equal(t, map[string]int{"mine": 1, "mine, again": 1}, got)
	last := chunk("t1", "CHAT-1", 2)
	last.Done = true
	require.NoError(t, hub.Publish(t.Context(), last))
	require.Equal(t, map[string]int{"mine": 2, "mine, again": 2, "the last chunk": 1}, got)
	require.NoError(t, hub.Publish(t.Context(), publish.AgentActivity{TenantID: "t1", AgentID: "CHAT-1"}))
	require.Equal(t, 1, got["agent"])
	require.Error(t, hub.Publish(t.Context(), publish.StreamChunk{ThreadID: "CHAT-1"}), "an event of no tenant")
}

func TestHubUnderChange(t *testing.T) {
	const threads, each, events, publishers = 50, 20, 100, 4
	hub := NewHub()
	var mu sync.Mutex
	received := map[string][]int{}
	for i := range threads {
		for j := range each { // 1,000 that stay
			name := fmt.Sprintf("%d/%d", i, j)
			l, err := newListener("onThreadEvent", map[string]any{"tenantId": "t1", "threadId": fmt.Sprint("CHAT-", i)}, func(event json.RawMessage) {
				mu.Lock()
				defer mu.Unlock()
				received[name] = append(received[name], number(t, event))
			})
			require.NoError(t, err)
			hub.add(l, func() {})
		}
	}
	var group sync.WaitGroup
	for p := range publishers { // each has its own threads, so that their order is defined
		group.Go(func() {
			for n := range events {
				for i := p; i < threads; i += publishers {
					if err := hub.Publish(t.Context(), chunk("t1", fmt.Sprint("CHAT-", i), n)); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	for g := range 4 { // and some that come and go
		group.Go(func() {
			for n := range 500 {
				var removed bool
				l, err := newListener("onThreadEvent", map[string]any{"tenantId": "t1", "threadId": fmt.Sprint("CHAT-", (g+n)%threads)}, nil)
				if err != nil {
					t.Error(err)
					return
				}
				var lock sync.Mutex
				added := false
				l.receive = func(json.RawMessage) {
					lock.Lock()
					defer lock.Unlock()
					if removed || !added {
						t.Error("an event before add or after remove")
					}
				}
				hub.add(l, func() { lock.Lock(); added = true; lock.Unlock() })
				hub.remove(l)
				lock.Lock()
				removed = true
				lock.Unlock()
			}
		})
	}
	group.Wait()
	require.Len(t, received, threads*each)
	for name, numbers := range received {
		require.Len(t, numbers, events, name)
		for i, n := range numbers {
			require.Equal(t, i, n, name)
		}
	}
	require.Len(t, hub.listeners, threads)
}

func TestHubForgetsAddressesWithoutListeners(t *testing.T) {
	hub := NewHub()
	l, err := newListener("onThreadEvent", map[string]any{"tenantId": "t1", "threadId": "CHAT-1"}, nil)
	require.NoError(t, err)
	hub.add(l, func() {})
	require.Len(t, hub.listeners, 1)
	hub.remove(l)
	hub.remove(l)
	require.Empty(t, hub.listeners)
}

func BenchmarkPublishToNobody(b *testing.B) {
	hub := NewHub()
	l, _ := newListener("onThreadEvent", map[string]any{"tenantId": "t1", "threadId": "CHAT-1"}, func(json.RawMessage) {})
	hub.add(l, func() {})
	var event publish.Event = chunk("t1", "CHAT-2", 1)
	b.ReportAllocs()
	for b.Loop() {
		_ = hub.Publish(b.Context(), event)
	}
}

func BenchmarkPublishToOneOf1000(b *testing.B) {
	hub := NewHub()
	for i := range 1000 {
		l, _ := newListener("onThreadEvent", map[string]any{"tenantId": "t1", "threadId": fmt.Sprint("CHAT-", i)}, func(json.RawMessage) {})
		hub.add(l, func() {})
	}
	var event publish.Event = chunk("t1", "CHAT-2", 1)
	b.ReportAllocs()
	for b.Loop() {
		_ = hub.Publish(b.Context(), event)
	}
}
