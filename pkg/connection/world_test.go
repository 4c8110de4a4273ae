package connection_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/connection"
	"github.com/agentplatform/agentplatform/pkg/egress"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/integration"
	"github.com/agentplatform/agentplatform/pkg/oauth/oauthtest"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/secret"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/text"
	"github.com/agentplatform/agentplatform/pkg/tracker"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const back = "https://console.example.test/connections"

// world is a tenant with an integration, and what is outside: the authorization server and the API of its provider, at one address as Linear has them.
type world struct {
	pgtest.World
	t            *testing.T
	db           *pgtest.DB
	authority    *oauthtest.Server
	provider     *httptest.Server
	api          atomic.Int32 // the status that the API answers with; 0: as it should
	visited      func()       // called when the API is asked
	integrations secret.Store
	tokens       *unsteady
	clients      *connection.Clients
	connections  *connection.Connections
	integration  integration.Integration
	ada          tenant.Caller // a member of the tenant
	logs         logs
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, db: pgtest.New(t), authority: oauthtest.New(t)}
	w.World = w.db.World(t, "acme")
	w.authority.ClientSecret = "the client's s3cret"
	w.authority.RedirectURIs = []string{back}
	w.provider = httptest.NewServer(w.outside())
	t.Cleanup(w.provider.Close)
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewJSONHandler(&w.logs, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	w.integrations, w.tokens = dir(t), &unsteady{Store: dir(t)}
	w.clients = connection.NewClients(w.db.App, w.integrations)
	w.connections = w.process()
	w.integration = w.integrate(w.World, "Linear")
	w.ada = w.user(w.TenantID, tenant.Member)
	return w
}

func dir(t *testing.T) secret.Store {
	store, err := secret.Dir(t.TempDir(), strings.Repeat("k", 32))
	require.NoError(t, err)
	return store
}

// process is Connections as another process has them.
func (w *world) process() *connection.Connections {
	c := connection.New(w.db.App, w.tokens, connection.NewClients(w.db.App, w.integrations), egress.Config{Loopback: true})
	w.t.Cleanup(c.Close)
	return c
}

// outside is Linear: its authorization server, and an API that says whose token it is.
func (w *world) outside() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/oauth/", w.authority.At("/oauth"))
	mux.HandleFunc("POST /graphql", func(rw http.ResponseWriter, r *http.Request) {
		if w.visited != nil {
			w.visited()
		}
		person, ok := w.authority.Whose(r)
		status := int(w.api.Load())
		switch {
		case status != 0:
			rw.WriteHeader(status)
		case !ok:
			rw.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(rw, `{"errors":[{"message":"Authentication required","extensions":{"type":"authentication error","code":"AUTHENTICATION_ERROR"}}]}`)
		default:
			fmt.Fprintf(rw, `{"data":{"viewer":{"id":%q,"name":"Somebody","organization":{"id":"org-1","name":"Acme"}}}}`, person)
		}
	})
	return mux
}

// integrate makes the tenant's integration with the provider.
func (w *world) integrate(of pgtest.World, name string) integration.Integration {
	w.t.Helper()
	config, err := json.Marshal(integration.Client{ClientID: w.authority.ClientID, RedirectURIs: []string{back}, APIURL: w.provider.URL, AuthURL: w.provider.URL})
	require.NoError(w.t, err)
	i, err := integration.Open(w.db.App, w.integrations, egress.Config{Loopback: true}).Create(w.t.Context(), tenant.Caller{TenantID: of.TenantID, UserID: of.UserID, Role: tenant.Owner},
		integration.New{Provider: integration.Linear, Settings: integration.Settings{Name: set(name), Config: set(string(config)),
			Secret: set(integration.SecretGiven{Token: &w.authority.ClientSecret})}}, nil)
	require.NoError(w.t, err)
	return i
}

func set[T any](v T) text.Patch[T] { return text.Patch[T]{Set: true, Value: &v} }

func (w *world) user(tenantID string, role tenant.Role) tenant.Caller {
	id := ident.New()
	require.NoError(w.t, w.db.App.InTenant(w.t.Context(), tenantID, func(tx pgx.Tx) error {
		_, err := tx.Exec(w.t.Context(), `insert into users (tenant_id, id, email, role) values ($1, $2, $3, $4)`, tenantID, id, id+"@acme.test", role)
		return err
	}))
	return tenant.Caller{TenantID: tenantID, UserID: id, Role: role}
}

func (w *world) start(caller tenant.Caller) connection.Begun {
	w.t.Helper()
	begun, err := w.clients.Start(w.t.Context(), caller, connection.Beginning{IntegrationID: w.integration.ID, RedirectURI: back})
	require.NoError(w.t, err)
	return begun
}

// begin sends the caller to the provider, where he is that person, and back.
func (w *world) begin(caller tenant.Caller, person string) connection.Return {
	w.t.Helper()
	state, code := w.authority.Consent(w.t, w.start(caller).AuthorizationURL, person)
	return connection.Return{State: state, Code: code}
}

func (w *world) connect(caller tenant.Caller, person string) connection.Connection {
	w.t.Helper()
	made, err := w.connections.Complete(w.t.Context(), caller, w.begin(caller, person))
	require.NoError(w.t, err)
	return made
}

// whoami uses the connection to ask the provider who it is.
func (w *world) whoami(by *connection.Connections, id string) (person string, err error) {
	linear, _ := tracker.Of("linear")
	err = by.Use(w.t.Context(), w.TenantID, id, func(ctx context.Context, over *http.Client, config tracker.Config, access string) error {
		who, err := linear.Whoami(ctx, over, config, access)
		person = who.UserID
		return err
	})
	return person, err
}

// token is what a call would be made with.
func token(ctx context.Context, by *connection.Connections, tenantID, id string) (access string, err error) {
	err = by.Use(ctx, tenantID, id, func(_ context.Context, _ *http.Client, _ tracker.Config, with string) error {
		access = with
		return nil
	})
	return access, err
}

// works holds that the connection does what it is for.
func (w *world) works(id, person string) {
	w.t.Helper()
	who, err := w.whoami(w.connections, id)
	require.NoError(w.t, err)
	require.Equal(w.t, person, who)
}

func (w *world) list(caller tenant.Caller) []connection.Connection {
	w.t.Helper()
	all, err := connection.List(w.t.Context(), w.db.App.In(caller.TenantID), caller, nil, 100)
	require.NoError(w.t, err)
	return all
}

func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	_, err := w.db.Superuser(w.t).Exec(w.t.Context(), sql, args...)
	require.NoError(w.t, err)
}

func (w *world) count(sql string, args ...any) (n int) {
	w.t.Helper()
	require.NoError(w.t, w.db.Superuser(w.t).QueryRow(w.t.Context(), sql, args...).Scan(&n))
	return n
}

// kept is the connection's tokens, as the store has them.
func (w *world) kept(id string) (map[string]any, error) {
	name, err := secret.Of(w.TenantID, "connections", id)
	require.NoError(w.t, err)
	value, err := w.tokens.Get(w.t.Context(), name)
	var k map[string]any
	if err == nil {
		require.NoError(w.t, json.Unmarshal([]byte(value), &k))
	}
	return k, err
}

func (w *world) keep(id string, k map[string]any) {
	name, err := secret.Of(w.TenantID, "connections", id)
	require.NoError(w.t, err)
	b, err := json.Marshal(k)
	require.NoError(w.t, err)
	require.NoError(w.t, w.tokens.Store.Put(w.t.Context(), name, string(b)))
}

// hidden holds that what is secret is in no row and no line of the log.
func (w *world) hidden(secrets ...string) {
	w.t.Helper()
	for _, table := range []string{"connections", "connection_states", "integrations"} {
		var rows string
		require.NoError(w.t, w.db.Superuser(w.t).QueryRow(w.t.Context(), `select coalesce(string_agg(t::text, ' '), '') from `+table+` t`).Scan(&rows))
		for _, s := range secrets {
			require.NotEmpty(w.t, s)
			require.NotContains(w.t, rows, s, table)
			require.NotContains(w.t, w.logs.String(), s)
		}
	}
}

// says holds that an error is for the caller, in these words.
func says(t *testing.T, err error, message string) {
	t.Helper()
	require.ErrorContains(t, err, message)
	require.Equal(t, fault.ValidationError, fault.From(err).Type)
}

// unsteady is a store that does not keep the next values.
type unsteady struct {
	secret.Store
	broken atomic.Int32 // how many
}

// Put implements secret.Store.
func (s *unsteady) Put(ctx context.Context, id secret.ID, value string) error {
	if s.broken.Add(-1) >= 0 {
		return secret.ErrBusy
	}
	return s.Store.Put(ctx, id, value)
}

// logs is what was logged.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
