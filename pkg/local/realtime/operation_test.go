package realtime

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/publish"
)

func TestASubscriptionFromStartToComplete(t *testing.T) {
	f := serve(t, nil)
	c := f.connect("t1")
	c.subscribe("one", "t1", onThread, "CHAT-1")
	c.subscribe("two", "Bearer t1", onAgent, "a-t1")

	require.NoError(t, f.hub.Publish(t.Context(), chunk("t1", "CHAT-1", 1)))
	require.Equal(t, `{"id":"one","type":"data","payload":{"data":{"onThreadEvent":`+
		`{"__typename":"StreamChunkEvent","tenantId":"t1","threadId":"CHAT-1","sequence":1,"messageId":"m","chunk":"1","done":false}}}}`, c.read())
	require.NoError(t, f.hub.Publish(t.Context(), publish.AgentActivity{TenantID: "t1", AgentID: "a-t1", ThreadID: "CHAT-1", Status: publish.Thinking}))
	require.Contains(t, c.read(), `{"id":"two","type":"data","payload":{"data":{"onAgentActivity":{"__typename":"AgentActivityEvent"`)

	c.send(`{"type":"stop","id":"one"}`)
	c.expect(`{"type":"complete","id":"one"}`)
	require.NoError(t, f.hub.Publish(t.Context(), chunk("t1", "CHAT-1", 2)))
	c.send(`{"type":"stop","id":"one"}`) // the answer to this is the next message: the chunk was for nobody
	c.expectError("error", "one", "UnknownOperationError")

	c.subscribe("one", "t1", onThread, "CHAT-1") // its id is free again
	require.NoError(t, f.hub.Publish(t.Context(), chunk("t1", "CHAT-1", 3)))
	require.Contains(t, c.read(), `"chunk":"3"`)
	require.NoError(t, c.socket.Close(websocket.StatusNormalClosure, ""))
}

func TestStartWithoutInit(t *testing.T) {
	f := serve(t, nil)
	c := f.dial("", "graphql-ws", "header-"+encoded(`{"Authorization":"t1"}`))
	c.subscribe("1", "t1", onThread, "CHAT-1")
}

func TestTwoTenantsWithTheSameThreadID(t *testing.T) {
	f := serve(t, nil)
	one, two := f.connect("t1"), f.connect("t2")
	one.subscribe("1", "t1", onThread, "CHAT-1")
	two.subscribe("1", "t2", onThread, "CHAT-1")
	for n := range 10 {
		require.NoError(t, f.hub.Publish(t.Context(), chunk("t1", "CHAT-1", n), chunk("t2", "CHAT-1", 100+n)))
	}
	for n := range 10 {
		require.Contains(t, one.read(), fmt.Sprintf(`"tenantId":"t1","threadId":"CHAT-1","sequence":%[1]d,"messageId":"m","chunk":"%[1]d"`, n))
		require.Contains(t, two.read(), fmt.Sprintf(`"tenantId":"t2","threadId":"CHAT-1","sequence":%[1]d,"messageId":"m","chunk":"%[1]d"`, 100+n))
	}
}

func TestEachSubscriptionHasItsOwnToken(t *testing.T) {
	f := serve(t, nil)
	c := f.connect("t1")
	c.subscribe("1", "t2", onThread, "CHAT-1") // the connection's token does not matter here
	require.NoError(t, f.hub.Publish(t.Context(), chunk("t1", "CHAT-1", 1), chunk("t2", "CHAT-1", 2)))
	require.Contains(t, c.read(), `"tenantId":"t2"`)
}

func TestMessagesThatAreRefused(t *testing.T) {
	f := serve(t, nil)
	f.tokens.issue("old", "t1", -time.Minute)
	c := f.connect("t1")
	c.subscribe("running", "t1", onThread, "CHAT-1")
	for name, test := range map[string]struct{ message, id, errorType string }{
		"not JSON":             {`{`, "", "UnsupportedOperation"},
		"not an object":        {`[1]`, "", "UnsupportedOperation"},
		"id is a number":       {`{"id":1,"type":"stop"}`, "", "UnsupportedOperation"},
		"no type":              {`{"id":"x"}`, "x", "UnsupportedOperation"},
		"unknown type":         {`{"id":"x","type":"subscribe"}`, "x", "UnsupportedOperation"},
		"type of the server":   {`{"id":"x","type":"data"}`, "x", "UnsupportedOperation"},
		"stop of nothing":      {`{"id":"x","type":"stop"}`, "x", "UnknownOperationError"},
		"duplicate":            {startMessage("running", "t1", onThread, "CHAT-1"), "running", "DuplicatedOperationError"},
		"no id":                {startMessage("", "t1", onThread, "CHAT-1"), "", "BadRequestException"},
		"no payload":           {`{"id":"x","type":"start"}`, "x", "BadRequestException"},
		"payload is a string":  {`{"id":"x","type":"start","payload":"{}"}`, "x", "BadRequestException"},
		"no token":             {`{"id":"x","type":"start","payload":{"data":"{}"}}`, "x", "UnauthorizedException"},
		"wrong token":          {startMessage("x", "forged", onThread, "CHAT-1"), "x", "UnauthorizedException"},
		"expired token":        {startMessage("x", "old", onThread, "CHAT-1"), "x", "UnauthorizedException"},
		"verifier unavailable": {startMessage("x", "unavailable", onThread, "CHAT-1"), "x", "InternalError"},
		"data is not JSON": {`{"id":"x","type":"start","payload":{"data":"subscription","extensions":{"authorization":{"Authorization":"t1"}}}}`,
			"x", "ValidationError"},
		"another tenant's thread": {startMessage("x", "t1", onThread, "CHAT-7-t2"), "x", "NotFound"},
		"a filter without thread": {startMessage("x", "t1", "subscription { everything }", "CHAT-1"), "x", "InternalError"},
	} {
		t.Run(name, func(t *testing.T) {
			c.T = t
			c.send(test.message)
			p := c.expectError("error", test.id, test.errorType)
			require.Zero(t, p.ErrorCode)
			require.NotContains(t, p.Message, "10.0.0.1")
		})
	}
	c.T = t
	require.NoError(t, c.socket.Write(t.Context(), websocket.MessageBinary, []byte(`{"type":"connection_init"}`)))
	c.expectError("error", "", "UnsupportedOperation")
	long := strings.Repeat("x", maxID+1)
	c.send(startMessage(long, "t1", onThread, "CHAT-1"))
	c.expectError("error", long, "BadRequestException")

	require.NoError(t, f.hub.Publish(t.Context(), chunk("t1", "CHAT-1", 1)))
	require.Contains(t, c.read(), `{"id":"running","type":"data"`, "what ran before still runs")
	require.Equal(t, 1, addresses(f.hub))
}

func TestAnIDIsQuotedInDataMessages(t *testing.T) {
	f := serve(t, nil)
	c := f.connect("t1")
	id := `"},"\u0000\u00ff<`
	c.send(`{"id":"\"},\"\u0000\u00ff<",` + startMessage("", "t1", onThread, "CHAT-1")[len(`{"id":"",`):])
	c.expect(`{"id":"\"},\"\u0000\u00ff<","type":"start_ack"}`)
	require.NoError(t, f.hub.Publish(t.Context(), chunk("t1", "CHAT-1", 1)))
	require.Contains(t, c.read(), `"type":"data"`, id)
}

func TestSubscriptionsOfAConnectionAreCounted(t *testing.T) {
	f := serve(t, nil)
	c := f.connect("t1")
	for i := range 100 {
		c.subscribe(fmt.Sprint(i), "t1", onThread, "CHAT-1")
	}
	c.send(startMessage("100", "t1", onThread, "CHAT-1"))
	require.Equal(t, "Max number of 100 subscriptions reached", c.expectError("error", "100", "MaxSubscriptionsReachedError").Message)
	c.send(`{"type":"stop","id":"7"}`)
	c.expect(`{"type":"complete","id":"7"}`)
	c.subscribe("100", "t1", onThread, "CHAT-1")

	require.NoError(t, f.hub.Publish(t.Context(), chunk("t1", "CHAT-1", 1)))
	seen := map[string]bool{}
	for range 100 {
		seen[c.read()] = true
	}
	require.Len(t, seen, 100)
}

func TestASubscriptionEndsWithItsToken(t *testing.T) {
	f := serve(t, func(c *Config) { c.ExpiryGrace = time.Nanosecond })
	f.tokens.issue("short", "t1", time.Second)
	f.tokens.issue("longer", "t1", 1500*time.Millisecond)
	c := f.connect("t1")
	c.subscribe("1", "t1", onThread, "CHAT-1")
	c.subscribe("2", "short", onThread, "CHAT-1")
	began := time.Now()
	c.subscribe("3", "longer", onThread, "CHAT-1")
	c.send(`{"type":"stop","id":"2"}`) // so its expiry does not matter any more
	c.expect(`{"type":"complete","id":"2"}`)
	require.Empty(t, c.expectClose(closedUnauthorized))
	require.GreaterOrEqual(t, time.Since(began), 1500*time.Millisecond)
}
