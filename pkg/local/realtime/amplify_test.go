package realtime_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/gateway"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/identity"
	"github.com/agentplatform/agentplatform/pkg/local/realtime"
	"github.com/agentplatform/agentplatform/pkg/manifest"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/schema"
	"github.com/agentplatform/agentplatform/test/npm"
)

const (
	issuer   = "https://pool.test/pool"
	clientID = "app"
)

// platform is AppSync as local mode plays it, over TLS: real gateway, verifier, hub and sockets. Only the functions behind it are made up:
// sendMessage answers with a short turn.
type platform struct {
	*testing.T
	key    *rsa.PrivateKey
	hub    *realtime.Hub
	server *httptest.Server
	ca     string
}

func start(t *testing.T, change func(*realtime.Config)) *platform {
	t.Helper()
	p := &platform{T: t, hub: realtime.NewHub()}
	var err error
	p.key, err = rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	keys := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		number := base64.RawURLEncoding.EncodeToString
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": []any{map[string]string{
			"kty": "RSA", "kid": "k", "use": "sig", "alg": "RS256", "n": number(p.key.N.Bytes()), "e": number(big.NewInt(int64(p.key.E)).Bytes()),
		}}})
	}))
	t.Cleanup(keys.Close)
	verifier, err := identity.New(identity.Config{Issuer: issuer, ClientID: clientID, JWKSURL: keys.URL, HTTPClient: keys.Client()})
	require.NoError(t, err)
	executor, err := gateway.New(gateway.Config{SDL: schema.SDL, Prelude: schema.Prelude, Functions: p.functions(), Manifest: manifest.Manifest{Rows: []manifest.Row{
		{Name: "on-thread-event", On: []string{"graphql Subscription.onThreadEvent"}},
		{Name: "on-agent-activity", On: []string{"graphql Subscription.onAgentActivity"}},
		{Name: "send-message", On: []string{"graphql Mutation.sendMessage"}},
	}}})
	require.NoError(t, err)
	config := realtime.Config{Hub: p.hub, Verifier: verifier, Executor: realtime.FromGateway(executor), Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&config)
	}
	sockets, err := realtime.New(config)
	require.NoError(t, err)
	p.server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if realtime.Wanted(r) && (r.URL.Path == "/graphql" || r.URL.Path == "/graphql/realtime") {
			sockets.ServeHTTP(w, r)
			return
		}
		claims, err := verifier.Verify(r.Context(), r.Header.Get("Authorization"))
		if err != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		body, _ := io.ReadAll(r.Body)
		post := gateway.Post{Body: body, ContentType: r.Header.Get("Content-Type"), Claims: claims, RequestID: ident.New(), AppSync: true}
		status, answer := executor.GraphQLHTTP(r.Context(), post)
		w.WriteHeader(status)
		_, _ = w.Write(answer)
	}))
	t.Cleanup(p.server.Close)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.NoError(t, sockets.Close(ctx))
	})
	p.ca = filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(p.ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw}), 0o600))
	return p
}

// functions is the table: tenant t1 has thread CHAT-1 and agent a1.
func (p *platform) functions() map[string]lambda.Handler {
	type threadArgs struct{ ThreadID string }
	type agentArgs struct{ AgentID string }
	type sendArgs struct {
		Input struct{ ThreadID, Body string }
	}
	allowed := func(ctx context.Context, kind, id, want string) (string, error) {
		caller, err := tenant.From(ctx)
		if err == nil && (caller.TenantID != "t1" || id != want) {
			err = fault.Missing(kind)
		}
		return caller.TenantID, err
	}
	return map[string]lambda.Handler{
		"on-thread-event": handler.Resolver(func(ctx context.Context, a threadArgs) (map[string]string, error) {
			tenantID, err := allowed(ctx, "thread", a.ThreadID, "CHAT-1")
			return map[string]string{"tenantId": tenantID, "threadId": a.ThreadID}, err
		}),
		"on-agent-activity": handler.Resolver(func(ctx context.Context, a agentArgs) (map[string]string, error) {
			tenantID, err := allowed(ctx, "agent", a.AgentID, "a1")
			return map[string]string{"tenantId": tenantID, "agentId": a.AgentID}, err
		}),
		"send-message": handler.Resolver(func(ctx context.Context, a sendArgs) (publish.Message, error) {
			m := publish.Message{ID: ident.New(), ThreadID: a.Input.ThreadID, Role: "user", Body: a.Input.Body, CreatedAt: ident.Now()}
			return m, p.hub.Publish(ctx, turn(m)...)
		}),
	}
}

// turn is what a turn that answers a message publishes.
func turn(asked publish.Message) []publish.Event {
	reply := publish.Message{ID: ident.New(), ThreadID: "CHAT-1", Role: "assistant", Body: "Grüß Gott! ✓", CreatedAt: ident.Now()}
	activity := "thinking about it"
	return []publish.Event{
		publish.NewMessage{TenantID: "t1", ThreadID: "CHAT-1", Message: asked},
		publish.AgentStatus{TenantID: "t1", ThreadID: "CHAT-1", AgentID: "a1", Status: publish.Thinking, Activity: &activity},
		publish.AgentActivity{TenantID: "t1", AgentID: "a1", ThreadID: "CHAT-1", Status: publish.Thinking, Timestamp: ident.Now()},
		publish.StreamChunk{TenantID: "t1", ThreadID: "CHAT-1", MessageID: reply.ID, Chunk: "Grüß "},
		publish.StreamChunk{TenantID: "t1", ThreadID: "CHAT-1", MessageID: reply.ID, Chunk: "Gott! ✓"},
		publish.StreamChunk{TenantID: "t1", ThreadID: "CHAT-1", MessageID: reply.ID, Done: true},
		publish.ThreadUpdate{TenantID: "t1", ThreadID: "CHAT-1", Thread: publish.Thread{ID: "CHAT-1", Status: "open", UpdatedAt: ident.Now()}},
		publish.NewMessage{TenantID: "t2", ThreadID: "CHAT-1", Message: publish.Message{ID: "foreign", Role: "assistant", Body: "another tenant's"}},
		publish.NewMessage{TenantID: "t1", ThreadID: "CHAT-1", Message: reply},
	}
}

// token is an access token of a tenant, signed by key.
func token(t *testing.T, key *rsa.PrivateKey, tenantID string, exp time.Time) string {
	t.Helper()
	unsigned := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.MapClaims{
		"iss": issuer, "client_id": clientID, "token_use": "access", "sub": "s", "iat": time.Now().Unix(), "exp": exp.Unix(), "custom:tenant_id": tenantID,
	})
	unsigned.Header["kid"] = "k"
	signed, err := unsigned.SignedString(key)
	require.NoError(t, err)
	return signed
}

// line is what amplify.mjs prints.
type line struct {
	Connection, Started, Field string
	Sent, Error                json.RawMessage
	Event                      struct {
		Typename      string `json:"__typename"`
		Chunk, Status string
		Message       struct{ Role, Body string }
	}
}

// amplify runs the client and hands over each line as it comes; it returns the exit code.
func (p *platform) amplify(on func(line), env ...string) int {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "node", "amplify.mjs")
	command.Dir = npm.Folder(p)
	command.Env = append(os.Environ(), append(env, "ENDPOINT="+p.server.URL+"/graphql", "NODE_EXTRA_CA_CERTS="+p.ca, "TIMEOUT_MS=40000")...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	stdout, err := command.StdoutPipe()
	require.NoError(p, err)
	require.NoError(p, command.Start())
	scanner := bufio.NewScanner(stdout)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		var l line
		if err := json.Unmarshal(scanner.Bytes(), &l); err != nil {
			p.Errorf("%v: %s", err, scanner.Text())
		}
		p.Log(scanner.Text())
		on(l)
	}
	if err := command.Wait(); err != nil {
		p.Log(err, stderr.String())
	}
	return command.ProcessState.ExitCode()
}

func TestAmplifySeesATurn(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	var seen []string
	var text, sent string
	code := p.amplify(func(l line) {
		switch e := l.Event; {
		case l.Started != "":
			seen = append(seen, "started")
		case l.Sent != nil:
			sent = string(l.Sent)
		case e.Typename != "":
			seen = append(seen, strings.TrimSpace(e.Typename+" "+e.Message.Role+e.Status))
			text += e.Chunk
			require.NotContains(t, e.Message.Body, "another tenant")
		}
	}, "TOKEN="+token(t, p.key, "t1", time.Now().Add(time.Hour)), "THREAD_ID=CHAT-1", "AGENT_ID=a1", "BODY=Hello, ✓ \"world\"\n")
	require.Zero(t, code)
	require.Contains(t, sent, `"body":"Hello, ✓ \"world\"\n"`)
	require.Equal(t, "Grüß Gott! ✓", text)
	require.Equal(t, []string{
		"started", "started", "NewMessageEvent user", "AgentStatusEvent thinking", "AgentActivityEvent thinking",
		"StreamChunkEvent", "StreamChunkEvent", "StreamChunkEvent", "ThreadUpdateEvent", "NewMessageEvent assistant",
	}, seen)
}

func TestAmplifyIsRefusedAnotherTenantsThread(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	var problem string
	code := p.amplify(func(l line) { problem += string(l.Error) },
		"TOKEN="+token(t, p.key, "t2", time.Now().Add(time.Hour)), "THREAD_ID=CHAT-1")
	require.Equal(t, 1, code)
	require.Contains(t, problem, "NotFound")
	require.Contains(t, problem, "thread not found")
}

func TestAmplifyIsRefusedAForgedToken(t *testing.T) {
	t.Parallel()
	p := start(t, nil)
	foreign, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	var problem string
	code := p.amplify(func(l line) { problem += string(l.Error) },
		"TOKEN="+token(t, foreign, "t1", time.Now().Add(time.Hour)), "THREAD_ID=CHAT-1")
	require.Equal(t, 1, code)
	require.Contains(t, problem, "UnauthorizedException", "Amplify gives up rather than try for ever")
}

func TestAmplifyReconnectsWithAFreshToken(t *testing.T) {
	t.Parallel()
	p := start(t, func(c *realtime.Config) {
		c.ExpiryGrace = time.Nanosecond
		c.Verifier = &hasty{Verifier: c.Verifier}
	})
	file := filepath.Join(t.TempDir(), "token")
	write := func(lasts time.Duration) {
		require.NoError(t, os.WriteFile(file, []byte(token(t, p.key, "t1", time.Now().Add(lasts))), 0o600))
	}
	write(time.Hour)
	starts, states := 0, ""
	code := p.amplify(func(l line) {
		states += l.Connection
		if l.Started != "" {
			if starts++; starts == 1 {
				write(2 * time.Hour)
			} else {
				require.NoError(t, p.hub.Publish(t.Context(), turn(publish.Message{ID: "m", Role: "user"})...))
			}
		}
		require.Nil(t, l.Error)
	}, "TOKEN_FILE="+file, "THREAD_ID=CHAT-1")
	require.Zero(t, code)
	require.Equal(t, 2, starts)
	require.Contains(t, states, "ConnectionDisrupted")
}

// hasty is a Verifier that lets the first token that it sees expire a second after each look at it.
type hasty struct {
	realtime.Verifier
	first atomic.Pointer[string]
}

func (h *hasty) Verify(ctx context.Context, authorization string) (tenant.Claims, error) {
	claims, err := h.Verifier.Verify(ctx, authorization)
	h.first.CompareAndSwap(nil, &authorization)
	if err == nil && *h.first.Load() == authorization {
		claims["exp"] = float64(time.Now().UnixMilli())/1000 + 1
	}
	return claims, err
}
