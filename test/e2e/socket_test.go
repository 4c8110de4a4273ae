package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"
	"github.com/stretchr/testify/require"
)

// frame is a message of the real-time protocol.
type frame struct {
	ID      string          `json:"id,omitempty"`
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

// event is any event of a thread or an agent, as watchDocument and watchAgentDocument select it.
type event struct {
	Typename string `json:"__typename"`
	TenantID string
	ThreadID string
	Sequence int
	AgentID  string
	Message  message
	Status   string
	Activity string
	Thread   struct{ ID, Status, Title, Metadata string }
	MessageID,
	Chunk string
	Done bool
}

// String is the event on a line, as the scripts see it.
func (e event) String() string {
	switch e.Typename {
	case "NewMessageEvent":
		return fmt.Sprintf("NewMessageEvent %s %q", e.Message.Role, e.Message.Body)
	case "StreamChunkEvent":
		return fmt.Sprintf("StreamChunkEvent %q done=%t", e.Chunk, e.Done)
	case "ThreadUpdateEvent":
		return fmt.Sprintf("ThreadUpdateEvent %s %q", e.Thread.Status, e.Thread.Title)
	case "AgentActivityEvent":
		return fmt.Sprintf("AgentActivityEvent %s %s %q", e.ThreadID, e.Status, e.Activity)
	}
	return fmt.Sprintf("%s %s %q", e.Typename, e.Status, e.Activity)
}

const (
	eventFields = `__typename
		... on NewMessageEvent { tenantId threadId sequence message { id role body turnId } }
		... on AgentStatusEvent { tenantId threadId sequence agentId status activity }
		... on ThreadUpdateEvent { tenantId threadId sequence thread { id status title metadata } }
		... on StreamChunkEvent { tenantId threadId sequence messageId chunk done }`
	watchDocument      = `subscription ($id: ID!) { onThreadEvent(threadId: $id) { ` + eventFields + ` } }`
	watchAgentDocument = `subscription ($id: ID!) { onAgentActivity(agentId: $id) { __typename tenantId agentId threadId status activity timestamp } }`
)

// subscription is one that runs; it collects what arrives.
type subscription struct {
	conn *websocket.Conn
	done chan struct{} // the reader has ended

	mu      sync.Mutex
	events  []event
	strange []string // messages that are no events
	grown   chan struct{}
}

// dial opens the socket at {realtime_url}/graphql with a token in the handshake, as Amplify does, up to connection_ack.
func (p *platform) dial(ctx context.Context, client *http.Client, token string) (*websocket.Conn, error) {
	header, err := json.Marshal(map[string]string{"Authorization": token, "host": strings.TrimPrefix(p.Outputs.RealtimeURL, "wss://")})
	if err != nil {
		return nil, err
	}
	conn, res, err := websocket.Dial(ctx, p.Outputs.RealtimeURL+"/graphql", &websocket.DialOptions{HTTPClient: client,
		Subprotocols: []string{"graphql-ws", "header-" + base64.RawURLEncoding.EncodeToString(header)}})
	if err != nil {
		if res != nil {
			return nil, errors.New(res.Status)
		}
		return nil, err
	}
	if err := wsjson.Write(ctx, conn, frame{Type: "connection_init"}); err != nil {
		return nil, err
	}
	if _, err := await(ctx, conn, "connection_ack"); err != nil {
		conn.CloseNow()
		return nil, err
	}
	return conn, nil
}

// await reads up to a message of a kind; an error message is an error "TYPE message".
func await(ctx context.Context, conn *websocket.Conn, kind string) (frame, error) {
	for {
		var f frame
		if err := wsjson.Read(ctx, conn, &f); err != nil {
			return f, err
		}
		switch f.Type {
		case kind:
			return f, nil
		case "error", "connection_error":
			return f, fmt.Errorf("%s %s", member(f.Payload, "errors.0.errorType"), member(f.Payload, "errors.0.message"))
		}
	}
}

// begin sends a start message and waits for its start_ack.
func begin(ctx context.Context, conn *websocket.Conn, id, token, data string) error {
	payload, err := json.Marshal(map[string]any{"data": data, "extensions": map[string]any{"authorization": map[string]string{"Authorization": token}}})
	if err != nil {
		return err
	}
	if err := wsjson.Write(ctx, conn, frame{ID: id, Type: "start", Payload: payload}); err != nil {
		return err
	}
	_, err = await(ctx, conn, "start_ack")
	return err
}

// subscribe starts a subscription on a socket of its own; a refusal is an error "TYPE message". Its events are of one field.
func (u *user) subscribe(t testing.TB, document, id string) (*subscription, error) {
	ctx, cancel := context.WithTimeout(context.Background(), waitTime)
	defer cancel()
	conn, err := u.dial(ctx, u.tlsClient(t), u.tokens.AccessToken)
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(1 << 20)
	data, err := json.Marshal(map[string]any{"query": document, "variables": vars{"id": id}})
	if err != nil {
		return nil, err
	}
	if err := begin(ctx, conn, "1", u.tokens.AccessToken, string(data)); err != nil {
		conn.CloseNow()
		return nil, err
	}
	s := &subscription{conn: conn, done: make(chan struct{}), grown: make(chan struct{})}
	go s.read()
	return s, nil
}

// watch subscribes to a thread for as long as the test runs.
func (u *user) watch(t testing.TB, thread string) *subscription {
	t.Helper()
	s, err := u.subscribe(t, watchDocument, thread)
	require.NoError(t, err)
	t.Cleanup(s.close)
	return s
}

// close closes the socket without a word, as a client that vanishes does.
func (s *subscription) close() {
	s.conn.CloseNow()
	<-s.done
}

func (s *subscription) read() {
	defer close(s.done)
	for {
		var f frame
		if err := wsjson.Read(context.Background(), s.conn, &f); err != nil {
			return
		}
		if f.Type == "ka" {
			continue
		}
		var payload struct {
			Data   map[string]event
			Errors []any
		}
		err := json.Unmarshal(f.Payload, &payload)
		s.mu.Lock()
		if f.Type != "data" || err != nil || len(payload.Errors) > 0 || len(payload.Data) != 1 {
			s.strange = append(s.strange, f.Type+" "+string(f.Payload))
		}
		for _, e := range payload.Data {
			s.events = append(s.events, e)
		}
		close(s.grown)
		s.grown = make(chan struct{})
		s.mu.Unlock()
	}
}

// seen is what has arrived so far.
func (s *subscription) seen() []event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]event{}, s.events...)
}

// await waits for an event from the given index on; it gives that event's index.
func (s *subscription) await(from int, want func(event) bool) (int, error) {
	deadline := time.After(waitTime)
	for {
		s.mu.Lock()
		events, strange, grown := s.events, s.strange, s.grown
		s.mu.Unlock()
		if len(strange) > 0 {
			return 0, fmt.Errorf("the socket said %v", strange)
		}
		for ; from < len(events); from++ {
			if want(events[from]) {
				return from, nil
			}
		}
		select {
		case <-grown:
		case <-s.done:
			return 0, errors.New("the socket closed")
		case <-deadline:
			return 0, fmt.Errorf("no such event in time; seen: %v", events)
		}
	}
}

// streamed checks the reply of a turn as subscribers saw it, and gives its text chunks: they make up the message's body, to the byte, the
// last event of them says done, and all came before the message.
func (s *subscription) streamed(turnID string) (body string, chunks []string, err error) {
	at, err := s.await(0, func(e event) bool { return e.Message.Role == "assistant" && e.Message.TurnID == turnID })
	if err != nil {
		return "", nil, err
	}
	reply, done := s.seen()[at].Message, false
	for i, e := range s.seen() {
		if e.MessageID != reply.ID {
			continue
		}
		if i > at || done {
			return "", nil, fmt.Errorf("a chunk came after the end: %v", e)
		}
		if done = e.Done; e.Chunk != "" {
			chunks = append(chunks, e.Chunk)
		}
	}
	if got := strings.Join(chunks, ""); got != reply.Body || !done {
		return "", nil, fmt.Errorf("the chunks %q (done: %t) are not the body %q", chunks, done, reply.Body)
	}
	return reply.Body, chunks, nil
}
