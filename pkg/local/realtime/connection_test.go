package realtime

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/publish"
)

func TestMessagesThatCloseTheConnection(t *testing.T) {
	f := serve(t, nil)
	c := f.connect("t1")
	c.send(strings.Repeat("x", 256<<10+1))
	c.expectClose(websocket.StatusMessageTooBig)

	c = f.connect("t1")
	c.send("{\"type\":\"\xff\"}")
	c.expectClose(websocket.StatusInvalidFramePayloadData)

	c = f.connect("t1") // and the largest that does not
	c.send(`{"type":"stop","id":"x","payload":"` + strings.Repeat("x", 200<<10) + `"}`)
	c.expectError("error", "x", "UnknownOperationError")
}

func TestOrderOverTheSubscriptionsOfAConnection(t *testing.T) {
	const events = 5000
	f := serve(t, func(c *Config) { c.QueueFrames = 3 * events })
	c := f.connect("t1")
	c.subscribe("thread", "t1", onThread, "CHAT-1")
	c.subscribe("agent", "t1", onAgent, "a-t1")
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() {
		for n := range events {
			activity := publish.AgentActivity{TenantID: "t1", AgentID: "a-t1", Status: publish.Streaming}
			if err := f.hub.Publish(t.Context(), chunk("t1", "CHAT-1", n), activity); err != nil {
				t.Error(err)
			}
		}
	})
	for n := range events {
		var m struct {
			ID      string
			Payload struct {
				Data struct{ OnThreadEvent json.RawMessage }
			}
		}
		require.NoError(t, json.Unmarshal([]byte(c.read()), &m))
		require.Equal(t, "thread", m.ID)
		require.Equal(t, n, number(t, m.Payload.Data.OnThreadEvent))
		require.Contains(t, c.read(), `"id":"agent"`)
	}
}

func TestStartAckComesBeforeEventsAndNoneIsMissedAfterIt(t *testing.T) {
	f := serve(t, func(c *Config) { c.QueueFrames = 1 << 20; c.QueueBytes = 1 << 28 })
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	group.Go(func() {
		pace := time.NewTicker(50 * time.Microsecond)
		defer pace.Stop()
		for n := 0; ctx.Err() == nil; n++ {
			<-pace.C
			if err := f.hub.Publish(ctx, chunk("t1", "CHAT-1", n)); err != nil {
				t.Error(err)
			}
		}
	})
	for range 20 {
		c := f.connect("t1")
		c.subscribe("1", "t1", onThread, "CHAT-1")
		last := -1
		for range 50 {
			var m struct {
				Payload struct {
					Data struct{ OnThreadEvent json.RawMessage }
				}
			}
			require.NoError(t, json.Unmarshal([]byte(c.read()), &m))
			n := number(t, m.Payload.Data.OnThreadEvent)
			require.True(t, last < 0 || n == last+1, "%d after %d", n, last)
			last = n
		}
		require.NoError(t, c.socket.CloseNow())
	}
}

func TestASlowConsumerIsClosedAndHoldsNobodyUp(t *testing.T) {
	f := serve(t, func(c *Config) { c.QueueBytes = 1 << 20; c.WriteTimeout = time.Minute })
	slow, quick := f.connect("t1"), f.connect("t1")
	slow.subscribe("1", "t1", onThread, "CHAT-1")
	quick.subscribe("1", "t1", onThread, "CHAT-1")
	event := chunk("t1", "CHAT-1", 1)
	event.Chunk = strings.Repeat("x", 100<<10)
	published := 0
	for ; f.ending() == 0; published++ {
		require.Less(t, published, 2000, "200 MB are more than sockets and queue hold")
		require.NoError(t, f.hub.Publish(t.Context(), event))
		require.Contains(t, quick.read(), `"type":"data"`)
	}
	before := slow.expectClose(websocket.StatusTryAgainLater)
	require.Less(t, len(before), published, "what did not fit was dropped")
	require.NoError(t, f.hub.Publish(t.Context(), event))
	require.Contains(t, quick.read(), `"type":"data"`)
}

// ending is how many connections are about to be closed.
func (f *fixture) ending() (n int) {
	f.server.mu.Lock()
	defer f.server.mu.Unlock()
	for c := range f.server.connections {
		if c.queue.over() {
			n++
		}
	}
	return n
}

// addresses is how many addresses have subscriptions.
func addresses(h *Hub) int {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return len(h.listeners)
}

// listening is how many subscriptions are at an address.
func listening(h *Hub, at publish.Address) int {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return len(h.listeners[at])
}

func TestQueueIsBounded(t *testing.T) {
	q := newQueue(3, 100)
	for range 3 {
		q.put(item{message: make([]byte, 10)})
	}
	require.False(t, q.over())
	q.put(item{message: make([]byte, 10)})
	require.True(t, q.over(), "too many")
	_, ok, ended := q.take()
	require.Equal(t, []bool{false, true}, []bool{ok, ended}, "nothing waits any more")

	q = newQueue(3, 100)
	q.put(item{message: make([]byte, 1000)}) // one always fits
	require.False(t, q.over())
	q.put(item{message: make([]byte, 1)})
	require.True(t, q.over(), "too large")
	code, reason := q.ending()
	require.Equal(t, websocket.StatusTryAgainLater, code)
	require.NotEmpty(t, reason)
	q.end(websocket.StatusGoingAway, "")
	code, _ = q.ending()
	require.Equal(t, websocket.StatusTryAgainLater, code, "the first end counts")
}

func TestClientsThatVanishLeaveNothing(t *testing.T) {
	f := serve(t, nil)
	for range 20 {
		c := f.connect("t1")
		c.subscribe("1", "t1", onThread, "CHAT-1")
		require.NoError(t, f.hub.Publish(t.Context(), chunk("t1", "CHAT-1", 1)))
		require.NoError(t, c.socket.CloseNow()) // mid-stream, without a word
	}
	require.Eventually(t, func() bool {
		_ = f.hub.Publish(t.Context(), chunk("t1", "CHAT-1", 1))
		f.server.mu.Lock()
		defer f.server.mu.Unlock()
		return len(f.server.connections) == 0
	}, time.Minute, 10*time.Millisecond)
	require.Zero(t, listening(f.hub, chunk("t1", "CHAT-1", 0).Address()))
}

func TestCloseEndsAllConnections(t *testing.T) {
	f := serve(t, nil)
	var clients []*client
	for range 10 {
		c := f.connect("t1")
		c.subscribe("1", "t1", onThread, "CHAT-1")
		clients = append(clients, c)
	}
	require.NoError(t, f.hub.Publish(t.Context(), chunk("t1", "CHAT-1", 1)))
	closed := make(chan error, 1)
	go func() { closed <- f.server.Close(t.Context()) }()
	for _, c := range clients {
		require.Len(t, c.expectClose(websocket.StatusGoingAway), 1, "what was published before arrives")
	}
	require.NoError(t, <-closed)
	_, response, err := websocket.Dial(t.Context(), f.url, &websocket.DialOptions{Subprotocols: []string{"graphql-ws"}})
	require.Error(t, err)
	require.Equal(t, http.StatusServiceUnavailable, response.StatusCode)
	require.NoError(t, f.server.Close(t.Context()), "again")
}

func TestCloseCutsConnectionsThatDoNotAnswer(t *testing.T) {
	f := serve(t, nil)
	c := f.connect("t1") // reads nothing more, so it does not answer the close
	c.subscribe("1", "t1", onThread, "CHAT-1")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, f.server.Close(ctx), context.DeadlineExceeded)
}
