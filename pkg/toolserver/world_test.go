package toolserver_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/agentplatform/agentplatform/pkg/audit/outbox"
	"github.com/agentplatform/agentplatform/pkg/egress"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/secret"
	"github.com/agentplatform/agentplatform/pkg/text"
	"github.com/agentplatform/agentplatform/pkg/tool"
	"github.com/agentplatform/agentplatform/pkg/toolserver"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// world is a tenant with tool servers.
type world struct {
	pgtest.World
	t       *testing.T
	db      *pgtest.DB
	outbox  *outbox.Outbox
	secrets secret.Store
	servers *toolserver.Servers
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, db: pgtest.New(t), outbox: outbox.New(outbox.Config{Key: []byte("an emission key")})}
	w.World = w.db.World(t, "acme")
	var err error
	w.secrets, err = secret.Dir(t.TempDir(), strings.Repeat("k", 32))
	require.NoError(t, err)
	w.servers = toolserver.New(w.db.App, w.secrets, egress.Config{Loopback: true})
	before := goleak.IgnoreCurrent() // the pool's
	t.Cleanup(func() {
		w.servers.Close()
		// pgx reads beside a write that takes long, until the connection has something to say.
		goleak.VerifyNone(t, before, goleak.IgnoreAnyFunction("github.com/jackc/pgx/v5/pgconn/internal/bgreader.(*BGReader).bgRead"))
	})
	return w
}

func set[T any](v T) text.Patch[T] { return text.Patch[T]{Set: true, Value: &v} }

// add registers a server and asks it for its tools.
func (w *world) add(name, url string, more ...func(*toolserver.NewServer)) toolserver.Server {
	w.t.Helper()
	n := toolserver.NewServer{Name: name, Settings: toolserver.Settings{URL: set(url)}}
	for _, m := range more {
		m(&n)
	}
	s, err := w.servers.Add(w.Context, w.outbox, w.TenantID, n)
	require.NoError(w.t, err)
	return w.refresh(s.ID)
}

func (w *world) refresh(id string) toolserver.Server {
	w.t.Helper()
	s, err := w.servers.Refresh(w.t.Context(), w.TenantID, id, w.UserID)
	require.NoError(w.t, err)
	return s
}

func with(c toolserver.Credential) func(*toolserver.NewServer) {
	return func(n *toolserver.NewServer) { n.Auth = set(c) }
}

func (w *world) tools(id string) map[string]toolserver.Tool {
	w.t.Helper()
	byServer, err := toolserver.Tools(w.t.Context(), w.db.App.In(w.TenantID), []string{id})
	require.NoError(w.t, err)
	byName := map[string]toolserver.Tool{}
	for _, tl := range byServer[id] {
		byName[tl.Name] = tl
	}
	return byName
}

func (w *world) approve(id string, tools ...toolserver.Tool) error {
	var seen []toolserver.Seen
	for _, tl := range tools {
		seen = append(seen, toolserver.Seen{Name: tl.Name, Hash: tl.Hash})
	}
	return w.db.App.InTenant(w.t.Context(), w.TenantID, func(tx pgx.Tx) error {
		_, err := toolserver.Approve(w.t.Context(), tx, id, w.UserID, seen)
		return err
	})
}

// turn is what an agent with these grants is offered; it is closed with the test.
func (w *world) turn(grants ...string) tool.Offer {
	w.t.Helper()
	var b pgx.Batch
	o := w.servers.Queue(&b, w.TenantID, `select $1::text[]`, grants)
	require.NoError(w.t, w.db.App.Once(w.t.Context(), w.TenantID, &b))
	w.t.Cleanup(o.Close)
	return o
}

func offered(o tool.Offer) (names []string) {
	for _, t := range o.Tools() {
		names = append(names, t.Name)
	}
	return names
}

// call calls a tool of a turn, and gives what the model would see.
func (w *world) call(o tool.Offer, name, input string) (string, error) {
	return w.callIn(w.t.Context(), o, name, input)
}

func (w *world) callIn(ctx context.Context, o tool.Offer, name, input string) (string, error) {
	w.t.Helper()
	for _, t := range o.Tools() {
		if t.Name == name {
			v, err := t.Run(ctx, tool.Call{TenantID: w.TenantID, Input: json.RawMessage(input)})
			if err != nil {
				return "", err
			}
			b, err := json.Marshal(v)
			require.NoError(w.t, err)
			return string(b), nil
		}
	}
	require.FailNow(w.t, "not offered", name)
	return "", nil
}

func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	_, err := w.db.Superuser(w.t).Exec(w.t.Context(), sql, args...)
	require.NoError(w.t, err)
}

func says(t *testing.T, err error, text string) {
	t.Helper()
	var f *fault.Error
	require.ErrorAs(t, err, &f)
	require.Equal(t, text, f.Message)
}

// server is an MCP server of the SDK, whose tools the test changes. It notes what it is asked.
type server struct {
	*sdk.Server
	url string

	mu      sync.Mutex
	asked   map[string]int // by method of HTTP, and by the tool called
	headers []http.Header
	before  func(w http.ResponseWriter, r *http.Request) bool // answers in the server's place when it says so
}

// serve starts a server with the tools; guard, if there is one, stands before it.
func serve(t *testing.T, guard func(path string, h http.Handler) http.Handler, names ...string) *server {
	s := &server{Server: sdk.NewServer(&sdk.Implementation{Name: "test", Version: "1"}, nil), asked: map[string]int{}}
	for _, name := range names {
		s.tool(name, "Does "+name+".")
	}
	var h http.Handler = sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s.Server }, nil)
	if guard != nil {
		h = guard("/mcp", h)
	}
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked[r.Method]++
		s.headers = append(s.headers, r.Header.Clone())
		before := s.before
		s.mu.Unlock()
		if before == nil || !before(w, r) {
			h.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(func() {
		served.Close()
		for session := range s.Sessions() { // those that nobody said goodbye to
			_ = session.Close()
		}
	})
	s.url = served.URL + "/mcp"
	return s
}

// tool adds a tool that says its input, or puts another in the place of the one of that name.
func (s *server) tool(name, description string) {
	s.AddTool(&sdk.Tool{Name: name, Description: description, InputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"number"}}}`),
		Annotations: &sdk.ToolAnnotations{ReadOnlyHint: strings.HasPrefix(name, "get")}},
		func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			s.mu.Lock()
			s.asked["tool "+name]++
			s.mu.Unlock()
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: name + " " + string(r.Params.Arguments)}}}, nil
		})
}

func (s *server) count(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[what]
}

func (s *server) intercept(before func(w http.ResponseWriter, r *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = before
}

func (s *server) last() http.Header {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.headers[len(s.headers)-1]
}
