package realtime

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// tokens is a Verifier that knows tokens by heart. A token's time begins when it is verified, so that no test depends on its own speed.
type tokens struct {
	mu sync.Mutex
	of map[string]issued
}

type issued struct {
	tenantID string
	lasts    time.Duration
}

func (v *tokens) Verify(_ context.Context, authorization string) (tenant.Claims, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if authorization == "unavailable" {
		return nil, errors.New("the keys could not be fetched from 10.0.0.1")
	}
	token, ok := v.of[strings.TrimPrefix(authorization, "Bearer ")]
	if !ok {
		return nil, fault.New(fault.Unauthorized, "missing or invalid token")
	}
	exp := float64(time.Now().Add(token.lasts).UnixMicro()) / 1e6
	return tenant.Claims{"custom:tenant_id": token.tenantID, "exp": exp}, nil
}

// issue makes a token of a tenant that is good for a time.
func (v *tokens) issue(token, tenantID string, lasts time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.of[token] = issued{tenantID, lasts}
}

// inventory is an Executor for documents of one field with one variable, id. Thread and agent ids are the tenant's when they end in its id,
// but for CHAT-1, which every tenant has.
type inventory struct{}

func (inventory) Subscribe(_ context.Context, request []byte, claims tenant.Claims, _ string) (*Subscription, []Problem) {
	var r struct {
		Query     string
		Variables struct{ ID string }
	}
	if err := json.Unmarshal(request, &r); err != nil {
		return nil, []Problem{{ErrorType: string(fault.ValidationError), Message: "no id"}}
	}
	tenantID := claims.Caller().TenantID
	field, subject := "onThreadEvent", "threadId"
	if strings.Contains(r.Query, "onAgentActivity") {
		field, subject = "onAgentActivity", "agentId"
	}
	filter := map[string]any{"tenantId": tenantID, subject: r.Variables.ID}
	switch {
	case strings.Contains(r.Query, "everything"):
		delete(filter, subject)
	case r.Variables.ID != "CHAT-1" && !strings.HasSuffix(r.Variables.ID, tenantID):
		return nil, []Problem{{ErrorType: string(fault.NotFound), Message: "thread not found"}}
	}
	render := func(_ context.Context, event json.RawMessage) json.RawMessage {
		return json.RawMessage(`{"data":{"` + field + `":` + string(event) + `}}`)
	}
	return &Subscription{Field: field, Filter: filter, Render: render}, nil
}

// fixture is a served endpoint with tokens of two tenants, t1 and t2.
type fixture struct {
	*testing.T
	hub    *Hub
	server *Server
	tokens *tokens
	url    string
}

func serve(t *testing.T, change func(*Config)) *fixture {
	t.Helper()
	f := &fixture{T: t, hub: NewHub(), tokens: &tokens{of: map[string]issued{}}}
	f.tokens.issue("t1", "t1", time.Hour)
	f.tokens.issue("t2", "t2", time.Hour)
	config := Config{Hub: f.hub, Verifier: f.tokens, Executor: inventory{}, Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&config)
	}
	var err error
	f.server, err = New(config)
	require.NoError(t, err)
	listener := httptest.NewServer(f.server)
	f.url = "ws" + strings.TrimPrefix(listener.URL, "http")
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = f.server.Close(ctx)
		listener.Close()
		require.Zero(t, addresses(f.hub), "subscriptions of closed connections")
	})
	return f
}

// client is a raw WebSocket client.
type client struct {
	*testing.T
	socket *websocket.Conn
}

// encoded is the header object of a handshake, in Amplify's encoding.
func encoded(header string) string { return base64.RawURLEncoding.EncodeToString([]byte(header)) }

// dial opens a connection with these subprotocols.
func (f *fixture) dial(query string, subprotocols ...string) *client {
	f.Helper()
	socket, _, err := websocket.Dial(f.Context(), f.url+"/graphql/realtime"+query, &websocket.DialOptions{Subprotocols: subprotocols})
	require.NoError(f, err)
	socket.SetReadLimit(64 << 20)
	f.Cleanup(func() { _ = socket.CloseNow() })
	return &client{f.T, socket}
}

// connect opens a connection by this token and greets.
func (f *fixture) connect(token string) *client {
	f.Helper()
	c := f.dial("", "graphql-ws", "header-"+encoded(`{"Authorization":"`+token+`","host":"localhost"}`))
	c.send(`{"type":"connection_init"}`)
	c.expect(`{"type":"connection_ack","payload":{"connectionTimeoutMs":300000}}`)
	c.expect(`{"type":"ka"}`)
	return c
}

// startMessage is a start message.
func startMessage(id, token, query, subject string) string {
	data, _ := json.Marshal(map[string]any{"query": query, "variables": map[string]string{"ID": subject}})
	message, _ := json.Marshal(map[string]any{"id": id, "type": "start", "payload": map[string]any{
		"data": string(data), "extensions": map[string]any{"authorization": map[string]string{"Authorization": token, "host": "localhost"}},
	}})
	return string(message)
}

const onThread, onAgent = "subscription { onThreadEvent }", "subscription { onAgentActivity }"

// subscribe starts a subscription that must succeed.
func (c *client) subscribe(id, token, query, subject string) {
	c.Helper()
	c.send(startMessage(id, token, query, subject))
	c.expect(`{"id":"` + id + `","type":"start_ack"}`)
}

func (c *client) send(message string) {
	c.Helper()
	require.NoError(c, c.socket.Write(c.Context(), websocket.MessageText, []byte(message)))
}

// read is the next message.
func (c *client) read() string {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), time.Minute)
	defer cancel()
	kind, message, err := c.socket.Read(ctx)
	require.NoError(c, err)
	require.Equal(c, websocket.MessageText, kind)
	return string(message)
}

func (c *client) expect(message string) {
	c.Helper()
	require.JSONEq(c, message, c.read())
}

// expectError reads an error message and gives its text.
func (c *client) expectError(kind, id, errorType string) Problem {
	c.Helper()
	var m struct {
		ID, Type string
		Payload  struct{ Errors []Problem }
	}
	text := c.read()
	require.NoError(c, json.Unmarshal([]byte(text), &m), text)
	require.Equal(c, []string{kind, id}, []string{m.Type, m.ID}, text)
	require.Len(c, m.Payload.Errors, 1, text)
	require.Equal(c, errorType, m.Payload.Errors[0].ErrorType, text)
	require.NotEmpty(c, m.Payload.Errors[0].Message)
	return m.Payload.Errors[0]
}

// expectClose reads until the server closes, and holds its code.
func (c *client) expectClose(code websocket.StatusCode) (before []string) {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), time.Minute)
	defer cancel()
	for {
		_, message, err := c.socket.Read(ctx)
		if err != nil {
			require.Equal(c, code, websocket.CloseStatus(err), "%v", err)
			return before
		}
		before = append(before, string(message))
	}
}
