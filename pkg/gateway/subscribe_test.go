package gateway

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/handler"
)

const onThread = `subscription On($id: ID!) { onThreadEvent(threadId: $id) { __typename
	... on NewMessageEvent { threadId message { id body } } ... on StreamChunkEvent { chunk done } } }`

func TestSubscribe(t *testing.T) {
	var asked handler.Event
	g := platform(t, Config{}, map[string]handlerFunc{
		"Subscription.onThreadEvent": func(_ context.Context, payload []byte) ([]byte, error) {
			return []byte(`{"data":{"tenantId":"acme","threadId":"CHAT-1"}}`), json.Unmarshal(payload, &asked)
		},
	})
	s, r := g.Subscribe(t.Context(), Request{Query: onThread, Variables: json.RawMessage(`{"id":"CHAT-1"}`)}, alice, "r")
	require.Nil(t, r)
	require.Equal(t, "onThreadEvent", s.Field)
	require.Equal(t, map[string]any{"threadId": "CHAT-1"}, s.Arguments)
	require.Equal(t, map[string]any{"tenantId": "acme", "threadId": "CHAT-1"}, s.Filter)
	require.Equal(t, "Subscription.onThreadEvent", asked.Field)
	require.Equal(t, "acme", asked.Claims.Caller().TenantSlug)

	require.True(t, s.Wants(json.RawMessage(`{"threadId":"CHAT-\u0031","x":1,"tenantId":"acme"}`)))
	for _, other := range []string{`{"threadId":"CHAT-2","tenantId":"acme"}`, `{"threadId":"CHAT-1"}`, `{"threadId":["CHAT-1"],"tenantId":"acme"}`, `[]`, `{`} {
		require.False(t, s.Wants(json.RawMessage(other)), other)
	}

	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 50 {
				for event, want := range map[string]string{
					`{"__typename":"StreamChunkEvent","tenantId":"acme","threadId":"CHAT-1","messageId":"m","chunk":"Hel","done":false}`: `{"data":{"onThreadEvent":{"__typename":"StreamChunkEvent","chunk":"Hel","done":false}}}`,
					`{"__typename":"NewMessageEvent","threadId":"CHAT-1","message":{"id":"m","body":"Hello"}}`:                           `{"data":{"onThreadEvent":{"__typename":"NewMessageEvent","threadId":"CHAT-1","message":{"id":"m","body":"Hello"}}}}`,
					`{"__typename":"ThreadUpdateEvent"}`: `{"data":{"onThreadEvent":{"__typename":"ThreadUpdateEvent"}}}`,
					`{"__typename":"NewMessageEvent","threadId":"CHAT-1"}`: `{"data":{"onThreadEvent":null},"errors":[{"message":"Cannot return null for non-nullable field NewMessageEvent.message.",` +
						`"errorType":"InternalError","locations":[{"line":2,"column":36}],"path":["onThreadEvent","message"]}]}`,
					`not JSON`: `{"errors":[{"message":"internal error (request r)","errorType":"InternalError","locations":[],"path":[]}]}`,
				} {
					if got := string(s.Render(t.Context(), json.RawMessage(event))); got != want {
						t.Errorf("%s\nwant %s", got, want)
						return
					}
				}
			}
		})
	}
	group.Wait()
}

func TestSubscribeRefused(t *testing.T) {
	g := platform(t, Config{}, map[string]handlerFunc{"Subscription.onThreadEvent": answers(`{"errorType":"NotFound","message":"thread not found"}`)})
	for query, want := range map[string]string{
		`subscription { onThreadEvent(threadId: "CHAT-1") { __typename } }`: `{"errors":[{"message":"thread not found","errorType":"NotFound",` +
			`"locations":[{"line":1,"column":16}],"path":["onThreadEvent"]}]}`,
		`subscription { onAgentActivity(agentId: 1) { status } }`: `{"errors":[{"message":"internal error (request r)","errorType":"InternalError",` +
			`"locations":[{"line":1,"column":16}],"path":["onAgentActivity"]}]}`,
		`{ turn(id: 1) { id } }`: `{"errors":[{"message":"The operation is not a subscription.","errorType":"ValidationError","locations":[],"path":[]}]}`,
		`subscription { onThreadEvent(threadId: 1) @skip(if: true) { __typename } }`: `{"errors":[{"message":"A subscription must select exactly one field.",` +
			`"errorType":"ValidationError","locations":[{"line":1,"column":1}],"path":[]}]}`,
		`subscription { a: onThreadEvent(threadId: 1) { __typename } b: onThreadEvent(threadId: 1) { __typename } }`: `{"errors":[{"message":"A subscription must select exactly one field.",` +
			`"errorType":"ValidationError","locations":[{"line":1,"column":1}],"path":[]}]}`,
	} {
		s, r := g.Subscribe(t.Context(), Request{Query: query}, alice, "r")
		require.Nil(t, s, query)
		require.Equal(t, want, rendered(r), query)
	}
	refusals := []string{
		`subscription { __typename }`, `subscription { onThreadEvent(threadId: 1) { __typename } onAgentActivity(agentId: 1) { status } }`,
		`subscription { onThreadEvent { __typename } }`, `subscription { onThreadEvent(threadId: null) { __typename } }`, `subscription {`,
	}
	for _, query := range refusals {
		s, r := g.Subscribe(t.Context(), Request{Query: query}, alice, "r")
		require.Nil(t, s, query)
		require.Equal(t, 400, r.Status(), query)
	}
	refused(t, g, Request{Query: `subscription { onThreadEvent(threadId: "CHAT-1") { __typename } }`}, "WebSocket")

	for _, answer := range []string{`{"data":null}`, `{"data":{}}`, `{"data":[1]}`, `{"data":true}`, `{}`} { // no filter would be everybody's events
		g := platform(t, Config{}, map[string]handlerFunc{"Subscription.onThreadEvent": answers(answer)})
		s, r := g.Subscribe(t.Context(), Request{Query: `subscription { onThreadEvent(threadId: 1) { __typename } }`}, alice, "r")
		require.Nil(t, s, answer)
		require.Equal(t, 500, r.Status(), answer)
	}
}

func TestPublishes(t *testing.T) {
	g := platform(t, Config{}, nil)
	require.Equal(t, []string{"onThreadEvent"}, g.Publishes("publishThreadEvent"))
	require.Equal(t, []string{"onAgentActivity"}, g.Publishes("publishAgentActivity"))
	require.Empty(t, g.Publishes("sendMessage"))
}
