package integration_test

import (
	"context"
	"encoding/json"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/egress"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/integration"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/secret"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/text"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// world is a tenant with integrations, and a store of secrets.
type world struct {
	pgtest.World
	t            testing.TB
	db           *pgtest.DB
	super        *pgx.Conn
	folder       string // of the store
	store        secret.Store
	integrations *integration.Integrations
}

func newWorld(t testing.TB) *world {
	t.Helper()
	db := pgtest.New(t)
	w := &world{World: db.World(t, "acme"), t: t, db: db, super: db.Superuser(t), folder: t.TempDir()}
	var err error
	w.store, err = secret.Dir(w.folder, "a key for tests, 32 characters..")
	require.NoError(t, err)
	w.integrations = integration.Open(db.App, w.store, egress.Config{Loopback: true})
	return w
}

// neighbour is another tenant of the same platform.
func (w *world) neighbour(slug string) *world {
	w.t.Helper()
	other := *w
	other.World = w.db.World(w.t, slug)
	return &other
}

func (w *world) caller() tenant.Caller {
	return tenant.Caller{TenantID: w.TenantID, UserID: w.UserID, Role: tenant.Owner}
}

const (
	signing = "a signing secret, s3cr3t"
	token   = "xoxb-t0k3n"
)

// generic is a new integration of the world's agent.
func (w *world) generic(change ...func(n *integration.New)) integration.New {
	n := integration.New{Provider: integration.Generic, Settings: integration.Settings{Name: is("Orders"), AgentID: is(w.AgentID),
		Secret: is(integration.SecretGiven{Signing: new(signing)})}}
	for _, c := range change {
		c(&n)
	}
	return n
}

// mailbox is a new integration that mail is sent to.
func (w *world) mailbox(address string) integration.New {
	return integration.New{Provider: integration.Email, Settings: integration.Settings{Name: is("Mail to " + address), AgentID: is(w.AgentID), Config: is(`{"address": "` + address + `"}`)}}
}

func (w *world) create(n integration.New) integration.Integration {
	w.t.Helper()
	i, err := w.integrations.Create(w.t.Context(), w.caller(), n, nil)
	require.NoError(w.t, err)
	return i
}

func (w *world) get(id string) integration.Integration {
	w.t.Helper()
	i, err := integration.Get(w.t.Context(), w.db.App.In(w.TenantID), id)
	require.NoError(w.t, err)
	return i
}

func (w *world) update(id string, n integration.Settings) (integration.Integration, error) {
	return w.integrations.Update(w.t.Context(), w.TenantID, id, n)
}

// known is the integration's secret, as whoever needs it reads it.
func (w *world) known(i integration.Integration) (integration.Secret, error) {
	return integration.NewSecrets(w.store).Get(w.t.Context(), w.TenantID, i.ID, i.Version)
}

// secrets counts what the store keeps, of all tenants.
func (w *world) secrets() (n int) {
	w.t.Helper()
	require.NoError(w.t, filepath.WalkDir(w.folder, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			n++
		}
		return err
	}))
	return n
}

// exec arranges what the application cannot.
func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	_, err := w.super.Exec(w.t.Context(), sql, args...)
	require.NoError(w.t, err)
}

// query reads one value of any tenant's rows.
func query[T any](w *world, sql string, args ...any) (v T) {
	w.t.Helper()
	require.NoError(w.t, w.super.QueryRow(w.t.Context(), sql, args...).Scan(&v))
	return v
}

// is is a setting that is given.
func is[T any](v T) text.Patch[T] { return text.Patch[T]{Set: true, Value: &v} }

// null is a setting that is given as null.
func null[T any]() text.Patch[T] { return text.Patch[T]{Set: true} }

func refused(t testing.TB, err error, says string) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, fault.ValidationError, fault.From(err).Type, "%v", err)
	require.Contains(t, fault.From(err).Message, says)
}

// workspace answers auth.test as Slack does.
type workspace struct {
	*httptest.Server
	mutex  sync.Mutex
	asked  []string // by which tokens
	answer map[string]any
}

func newWorkspace(t testing.TB) *workspace {
	w := &workspace{answer: map[string]any{"ok": true, "url": "https://acme.slack.com/", "team": "Acme", "user": "ada", "team_id": "T0001", "enterprise_id": "E0001", "user_id": "U0BOT", "bot_id": "B0001",
		"is_enterprise_install": false}}
	w.Server = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		w.mutex.Lock()
		defer w.mutex.Unlock()
		w.asked = append(w.asked, r.URL.Path+" "+r.Header.Get("Authorization"))
		_ = json.NewEncoder(out).Encode(w.answer)
	}))
	t.Cleanup(w.Close)
	return w
}

func (s *workspace) says(answer map[string]any) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.answer = answer
}

// slack is a new integration with a workspace.
func (w *world) slack(s *workspace) integration.New {
	return integration.New{Provider: integration.Slack, Settings: integration.Settings{Name: is("Acme"), AgentID: is(w.AgentID), Config: is(`{"apiUrl": "` + s.URL + `/api/"}`),
		Secret: is(integration.SecretGiven{Signing: new(signing), Token: new(token)})}}
}

// failing is a store that puts, and whose caller is then cancelled.
type failing struct {
	secret.Store
	cancel func()
}

func (f failing) Put(ctx context.Context, id secret.ID, value string) error {
	err := f.Store.Put(ctx, id, value)
	f.cancel()
	return err
}

// broken is a store that takes nothing away.
type broken struct {
	secret.Store
	err error
}

func (b broken) Delete(context.Context, secret.ID) error { return b.err }

// lose takes an integration's secret out of the store.
func (w *world) lose(integrationID string) {
	w.t.Helper()
	id, err := secret.Of(w.TenantID, "integrations", integrationID)
	require.NoError(w.t, err)
	require.NoError(w.t, w.store.Delete(w.t.Context(), id))
}
