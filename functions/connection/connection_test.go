package connection_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	functions "github.com/agentplatform/agentplatform/functions/connection"
	"github.com/agentplatform/agentplatform/pkg/connection"
	"github.com/agentplatform/agentplatform/pkg/egress"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/integration"
	"github.com/agentplatform/agentplatform/pkg/oauth/oauthtest"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/text"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

type args = map[string]any

const back = "https://console.example.test/connections"

// world is a tenant with an integration, and the provider outside.
type world struct {
	*handlertest.Platform
	pgtest.World
	t           *testing.T
	authority   *oauthtest.Server
	integration integration.Integration
}

func newWorld(t *testing.T) *world {
	w := &world{Platform: handlertest.New(t), t: t, authority: oauthtest.New(t)}
	w.World = w.DB.World(t, "acme")
	w.authority.ClientSecret, w.authority.RedirectURIs = "the client's s3cret", []string{back}
	mux := http.NewServeMux()
	mux.Handle("/oauth/", w.authority.At("/oauth"))
	mux.HandleFunc("POST /graphql", func(rw http.ResponseWriter, r *http.Request) {
		person, _ := w.authority.Whose(r)
		fmt.Fprintf(rw, `{"data":{"viewer":{"id":%q,"name":"Somebody","organization":{"id":"org-1","name":"Acme"}}}}`, person)
	})
	linear := httptest.NewServer(mux)
	t.Cleanup(linear.Close)
	config, err := json.Marshal(integration.Client{ClientID: w.authority.ClientID, RedirectURIs: []string{back}, APIURL: linear.URL, AuthURL: linear.URL})
	require.NoError(t, err)
	w.integration, err = integration.Open(w.DB.App, w.IntegrationSecrets(), egress.Config{Loopback: true}).Create(t.Context(), tenant.Caller{TenantID: w.TenantID, UserID: w.UserID, Role: tenant.Owner},
		integration.New{Provider: integration.Linear, Settings: integration.Settings{Name: set("Linear"), Config: set(string(config)),
			Secret: set(integration.SecretGiven{Token: &w.authority.ClientSecret})}}, nil)
	require.NoError(t, err)
	return w
}

func set[T any](v T) text.Patch[T] { return text.Patch[T]{Set: true, Value: &v} }

// member is a user of the tenant.
func (w *world) member() tenant.Claims {
	id := ident.New()
	require.NoError(w.t, w.DB.App.InTenant(w.t.Context(), w.TenantID, func(tx pgx.Tx) error {
		_, err := tx.Exec(w.t.Context(), `insert into users (tenant_id, id, email, role) values ($1, $2, $3, 'member')`, w.TenantID, id, id+"@acme.test")
		return err
	}))
	return tenant.Claims{"custom:tenant_id": w.TenantID, "custom:user_id": id, "custom:role": "member", "email": "x@acme.test", "email_verified": true}
}

func (w *world) start(by tenant.Claims, input args) (connection.Begun, *fault.Error) {
	w.t.Helper()
	return handlertest.Call[connection.Begun](w.t, w.Platform, "start-connection", functions.StartConnection, by, args{"input": input})
}

func (w *world) complete(by tenant.Claims, state, code string) (connection.Connection, *fault.Error) {
	w.t.Helper()
	return handlertest.Call[connection.Connection](w.t, w.Platform, "complete-connection", functions.CompleteConnection, by, args{"input": args{"state": state, "code": code}})
}

func (w *world) delete(by tenant.Claims, id string) (connection.Connection, *fault.Error) {
	w.t.Helper()
	return handlertest.Call[connection.Connection](w.t, w.Platform, "delete-connection", functions.DeleteConnection, by, args{"id": id})
}

func (w *world) list(by tenant.Claims, a args) (page.Page[connection.Connection], *fault.Error) {
	w.t.Helper()
	return handlertest.Call[page.Page[connection.Connection]](w.t, w.Platform, "list-connections", functions.ListConnections, by, a)
}

func (w *world) connect(by tenant.Claims, person string) connection.Connection {
	w.t.Helper()
	begun, err := w.start(by, args{"integrationId": w.integration.ID, "redirectUri": back})
	require.Nil(w.t, err)
	state, code := w.authority.Consent(w.t, begun.AuthorizationURL, person)
	made, err := w.complete(by, state, code)
	require.Nil(w.t, err)
	return made
}

func TestConnections(t *testing.T) {
	w := newWorld(t)
	ada, bob, owner := w.member(), w.member(), handlertest.Claims(w.World, tenant.Owner)
	hers := w.connect(ada, "u-ada")
	his := w.connect(bob, "u-bob")
	require.Equal(t, connection.Active, hers.Status)
	require.Equal(t, ada["custom:user_id"], hers.UserID)

	listed, err := w.list(ada, args{})
	require.Nil(t, err)
	require.Equal(t, []connection.Connection{hers}, listed.Items)
	require.Nil(t, listed.NextToken)
	first, err := w.list(owner, args{"limit": 1})
	require.Nil(t, err)
	require.Equal(t, []connection.Connection{hers}, first.Items)
	second, err := w.list(owner, args{"limit": 1, "nextToken": *first.NextToken})
	require.Nil(t, err)
	require.Equal(t, []connection.Connection{his}, second.Items)
	require.Nil(t, second.NextToken)
	_, err = w.list(bob, args{"nextToken": *first.NextToken})
	require.Equal(t, fault.ValidationError, err.Type, "a token of another's list")

	_, err = w.delete(ada, his.ID)
	require.Equal(t, fault.Missing("connection"), err)
	gone, err := w.delete(owner, his.ID)
	require.Nil(t, err)
	require.Equal(t, his, gone)
	gone, err = w.delete(ada, hers.ID)
	require.Nil(t, err)
	require.Equal(t, hers, gone)
	require.Zero(t, w.authority.Allowed())
	listed, err = w.list(owner, args{})
	require.Nil(t, err)
	require.Empty(t, listed.Items)
}

func TestConnectionsThatAreRefused(t *testing.T) {
	w := newWorld(t)
	ada, bob, nobody := w.member(), w.member(), tenant.Claims{"email": "x@y.test", "email_verified": true}
	theirs := handlertest.Claims(w.DB.World(t, "globex"), tenant.Owner)
	good := args{"integrationId": w.integration.ID, "redirectUri": back}
	_, err := w.start(nobody, good)
	require.Equal(t, fault.Forbidden, err.Type)
	_, err = w.complete(nobody, "s", "c")
	require.Equal(t, fault.Forbidden, err.Type)
	_, err = w.list(nobody, args{})
	require.Equal(t, fault.Forbidden, err.Type)
	_, err = w.delete(nobody, ident.New())
	require.Equal(t, fault.Forbidden, err.Type)
	_, err = w.start(theirs, good)
	require.Equal(t, fault.Missing("integration"), err)
	_, err = w.start(ada, args{"integrationId": w.integration.ID, "redirectUri": "https://evil.example.test/"})
	require.Equal(t, fault.Invalid("redirectUri is none of the integration's redirectUris"), err)

	begun, err := w.start(ada, good)
	require.Nil(t, err)
	state, code := w.authority.Consent(t, begun.AuthorizationURL, "u-ada")
	_, unknown := w.complete(ada, strings.Repeat("A", 43), code)
	require.Equal(t, fault.ValidationError, unknown.Type)
	for _, by := range []tenant.Claims{bob, theirs} {
		_, err = w.complete(by, state, code)
		require.Equal(t, unknown, err, "as one that never was")
	}
	_, err = w.complete(ada, state, code)
	require.Nil(t, err)
	_, err = w.complete(ada, state, code)
	require.Equal(t, unknown, err)
}
