package connection_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/connection"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/integration"
	"github.com/agentplatform/agentplatform/pkg/secret"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

const notGood = "the state is not one that you have begun a connection with in the last ten minutes, or it was used: connect again"

func TestConnecting(t *testing.T) {
	w := newWorld(t)
	begun := w.start(w.ada)
	require.WithinDuration(t, time.Now().Add(10*time.Minute), begun.ExpiresAt.Time, time.Minute)
	to, err := url.Parse(begun.AuthorizationURL)
	require.NoError(t, err)
	require.Equal(t, "consent", to.Query().Get("prompt"), "as Linear wants it")
	state, code := w.authority.Consent(t, begun.AuthorizationURL, "u-ada")
	w.hidden(state)
	made, err := w.connections.Complete(t.Context(), w.ada, connection.Return{State: state, Code: code})
	require.NoError(t, err)
	require.Equal(t, connection.Connection{ID: made.ID, UserID: w.ada.UserID, IntegrationID: w.integration.ID, Provider: integration.Linear, ProviderUserID: "u-ada",
		Account: new("org-1"), AccountName: new("Acme"), Scopes: []string{"read"}, Status: connection.Active, CreatedAt: made.CreatedAt, UpdatedAt: made.UpdatedAt}, shown(t, made))
	w.works(made.ID, "u-ada")
	require.Equal(t, 1, w.authority.Given())
	require.Zero(t, w.count(`select count(*) from connection_states`))

	again := w.connect(w.ada, "u-ada")
	require.Equal(t, made.ID, again.ID, "whoever is connected is connected anew")
	require.Equal(t, made.CreatedAt, again.CreatedAt)
	w.works(made.ID, "u-ada")
	other := w.connect(w.ada, "u-ada-at-home")
	w.works(other.ID, "u-ada-at-home")
	require.Len(t, w.list(w.ada), 2)

	kept, err := w.kept(made.ID)
	require.NoError(t, err)
	secrets := []string{state, code, kept["access"].(string), kept["refreshToken"].(string), w.authority.ClientSecret}
	w.hidden(secrets...)
	answers, err := json.Marshal([]any{made, again, w.list(w.ada)})
	require.NoError(t, err)
	for _, s := range secrets {
		require.NotContains(t, string(answers), s)
		require.False(t, strings.Contains(begun.AuthorizationURL, s) && s != state)
	}
	require.NotContains(t, kept, "clientSecret", "it is the integration's")
}

// shown is the connection as the API shows it.
func shown(t *testing.T, c connection.Connection) (s connection.Connection) {
	b, err := json.Marshal(c)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &s))
	return s
}

func TestAStateIsGoodOnce(t *testing.T) {
	w := newWorld(t)
	r := w.begin(w.ada, "u-ada")
	other := w.process()
	var all sync.WaitGroup
	var made atomic.Int32
	begin := make(chan struct{})
	for n := range 20 {
		all.Go(func() {
			by := w.connections
			if n%2 == 0 {
				by = other
			}
			<-begin
			_, err := by.Complete(t.Context(), w.ada, r)
			if err == nil {
				made.Add(1)
				return
			}
			says(t, err, notGood)
		})
	}
	close(begin)
	all.Wait()
	require.EqualValues(t, 1, made.Load())
	require.Equal(t, 1, w.authority.Given(), "the code was sent once")
	w.works(w.list(w.ada)[0].ID, "u-ada")
}

// A state is of no use to anybody but the user who has begun, and nobody learns whether it is anybody's.
func TestAStateIsItsUsers(t *testing.T) {
	w := newWorld(t)
	r := w.begin(w.ada, "u-ada")
	globex := w.db.World(t, "globex")
	w.integrate(globex, "Linear")
	theirs := w.user(globex.TenantID, tenant.Owner)
	theirs.UserID = w.ada.UserID // not even under the same id
	for name, caller := range map[string]tenant.Caller{
		"another member": w.user(w.TenantID, tenant.Member), "the owner": {TenantID: w.TenantID, UserID: w.UserID, Role: tenant.Owner},
		"another tenant": w.user(globex.TenantID, tenant.Member), "of the same id": theirs,
	} {
		_, err := w.connections.Complete(t.Context(), caller, r)
		says(t, err, notGood)
		require.Empty(t, w.list(caller), name)
	}
	for _, forged := range []string{"", "x", r.State + "A", r.State[:42], strings.ToUpper(r.State), strings.Repeat("A", 43), strings.Repeat("x", 1<<20)} {
		_, err := w.connections.Complete(t.Context(), w.ada, connection.Return{State: forged, Code: r.Code})
		says(t, err, notGood)
	}
	for _, code := range []string{"", "a b", "a\r\nb", "é", strings.Repeat("c", 2001)} {
		_, err := w.connections.Complete(t.Context(), w.ada, connection.Return{State: r.State, Code: code})
		says(t, err, "code must be the code that the provider has sent back")
	}
	require.Zero(t, w.authority.Given())
	_, err := w.connections.Complete(t.Context(), w.ada, r)
	require.NoError(t, err, "nobody has used it up")

	r = w.begin(w.ada, "u-ada")
	w.exec(`update connection_states set expires_at = clock_timestamp() - interval '1 second'`)
	_, err = w.connections.Complete(t.Context(), w.ada, r)
	says(t, err, notGood)
}

// A code is good only with the verifier of its own state, which only who has the client's secret can make.
func TestACodeOfAnotherState(t *testing.T) {
	w := newWorld(t)
	mine, stolen := w.begin(w.ada, "u-ada"), w.begin(w.user(w.TenantID, tenant.Member), "u-bob")
	_, err := w.connections.Complete(t.Context(), w.ada, connection.Return{State: mine.State, Code: stolen.Code})
	says(t, err, "the connection cannot be made: the authorization server refuses: invalid_grant")
	_, err = w.connections.Complete(t.Context(), w.ada, mine)
	says(t, err, notGood)
	require.Empty(t, w.list(w.ada))
	require.Zero(t, w.authority.Given())
	w.hidden(mine.State, stolen.Code)
}

func TestWhereOneMayComeBackTo(t *testing.T) {
	w := newWorld(t)
	for _, uri := range []string{"", back + "/", back + "?x=y", back + "#f", "http" + strings.TrimPrefix(back, "https"), strings.ToUpper(back), back + "/../evil", "https://console.example.test.evil.test/connections",
		"https://console.example.test@evil.test/connections", "javascript:alert(1)"} {
		_, err := w.clients.Start(t.Context(), w.ada, connection.Beginning{IntegrationID: w.integration.ID, RedirectURI: uri})
		says(t, err, "redirectUri is none of the integration's redirectUris")
	}
	require.Zero(t, w.count(`select count(*) from connection_states`))
}

func TestWhatCannotBeConnectedTo(t *testing.T) {
	w := newWorld(t)
	theirs := w.integrate(w.db.World(t, "globex"), "Linear")
	for _, id := range []string{"", "no id", ident.New(), theirs.ID} {
		_, err := w.clients.Start(t.Context(), w.ada, connection.Beginning{IntegrationID: id, RedirectURI: back})
		require.Equal(t, fault.Missing("integration"), err, id)
	}
	start := func() error {
		_, err := w.clients.Start(t.Context(), w.ada, connection.Beginning{IntegrationID: w.integration.ID, RedirectURI: back})
		return err
	}
	r := w.begin(w.ada, "u-ada")
	w.exec(`update integrations set enabled = false`)
	says(t, start(), "the integration is disabled")
	_, err := w.connections.Complete(t.Context(), w.ada, r)
	says(t, err, "the integration is disabled")
	w.exec(`update integrations set enabled = true, provider = 'generic'`)
	says(t, start(), "users connect to linear, jira, asana only: the integration is one with generic")
	w.exec(`update integrations set provider = 'linear', secret_version = 0`)
	says(t, start(), "the integration has no secret of its OAuth client")
	w.exec(`update users set status = 'disabled' where id = $1`, w.ada.UserID)
	w.exec(`update integrations set secret_version = 1`)
	require.Equal(t, fault.New(fault.Forbidden, "this user is not active"), start())
}

// Each provider is asked as it wants to be.
func TestWhereOneIsSent(t *testing.T) {
	w := newWorld(t)
	for provider, want := range map[string]struct {
		page   string
		query  url.Values
		scopes string
	}{
		"linear": {"https://linear.app/oauth/authorize", url.Values{"prompt": {"consent"}}, "read"},
		"jira": {"https://auth.atlassian.com/authorize", url.Values{"audience": {"api.atlassian.com"}, "prompt": {"consent"}},
			"read:jira-work read:jira-user read:me offline_access"},
		"asana": {"https://app.asana.com/-/oauth_authorize", url.Values{}, "tasks:read users:read stories:read projects:read workspaces:read"},
	} {
		w.exec(`update integrations set provider = $1, config = $2`, provider, `{"clientId":"our client","redirectUris":["`+back+`"]}`)
		to, err := url.Parse(w.start(w.ada).AuthorizationURL)
		require.NoError(t, err)
		q := to.Query()
		require.Equal(t, want.page, to.Scheme+"://"+to.Host+to.Path)
		require.Regexp(t, `^[A-Za-z0-9_-]{43}$`, q.Get("state"))
		require.Regexp(t, `^[A-Za-z0-9_-]{43}$`, q.Get("code_challenge"))
		maps.Copy(want.query, url.Values{"client_id": {"our client"}, "redirect_uri": {back}, "response_type": {"code"}, "code_challenge_method": {"S256"}, "scope": {want.scopes},
			"state": q["state"], "code_challenge": q["code_challenge"]})
		require.Equal(t, want.query, q)
	}
	w.exec(`update integrations set provider = 'linear', config = $1`, `{"clientId":"our client","scopes":["read","write"],"redirectUris":["`+back+`"]}`)
	to, err := url.Parse(w.start(w.ada).AuthorizationURL)
	require.NoError(t, err)
	require.Equal(t, "read,write", to.Query().Get("scope"))
}

// A user begins as often as he likes; the last 20 may be gone on with.
func TestOpenStatesAreBounded(t *testing.T) {
	w := newWorld(t)
	first := w.begin(w.ada, "u-ada")
	w.exec(`update connection_states set expires_at = expires_at - interval '1 minute'`)
	bob := w.user(w.TenantID, tenant.Member)
	w.start(bob)
	var all sync.WaitGroup
	for range 30 {
		all.Go(func() { w.start(w.ada) })
	}
	all.Wait()
	require.Equal(t, 20, w.count(`select count(*) from connection_states where user_id = $1`, w.ada.UserID))
	require.Equal(t, 1, w.count(`select count(*) from connection_states where user_id = $1`, bob.UserID))
	_, err := w.connections.Complete(t.Context(), w.ada, first)
	says(t, err, notGood)
	w.exec(`update connection_states set expires_at = clock_timestamp() - interval '1 second'`)
	w.start(w.ada)
	require.Equal(t, 1, w.count(`select count(*) from connection_states where user_id = $1`, w.ada.UserID))
}

func TestAPersonIsOneUsers(t *testing.T) {
	w := newWorld(t)
	var all sync.WaitGroup
	var winner atomic.Value
	begin := make(chan struct{})
	for range 8 {
		caller := w.user(w.TenantID, tenant.Member)
		r := w.begin(caller, "u-shared")
		all.Go(func() {
			<-begin
			c, err := w.connections.Complete(t.Context(), caller, r)
			if err == nil {
				require.True(t, winner.CompareAndSwap(nil, c), "there is one already")
				return
			}
			says(t, err, "another user of the tenant is connected as this person")
		})
	}
	close(begin)
	all.Wait()
	c := winner.Load().(connection.Connection)
	require.Equal(t, 1, w.count(`select count(*) from connections`))
	w.works(c.ID, "u-shared")

	globex := w.db.World(t, "globex")
	w.integration = w.integrate(globex, "Linear")
	require.NotEqual(t, c.ID, w.connect(w.user(globex.TenantID, tenant.Member), "u-shared").ID, "another tenant has its own")
}

// A person is one user's whichever integration it is connected by, and a user who connects by another one has still one connection.
func TestAPersonByAnotherIntegration(t *testing.T) {
	w := newWorld(t)
	first, made := w.integration, w.connect(w.ada, "u-ada")
	w.integration = w.integrate(w.World, "Linear of another team")
	bob := w.user(w.TenantID, tenant.Member)
	_, err := w.connections.Complete(t.Context(), bob, w.begin(bob, "u-ada"))
	says(t, err, "another user of the tenant is connected as this person")
	require.Equal(t, first.ID, w.only(w.ada).IntegrationID)
	require.Empty(t, w.list(bob))

	moved := w.connect(w.ada, "u-ada")
	require.Equal(t, []string{made.ID, w.integration.ID}, []string{moved.ID, moved.IntegrationID})
	require.Equal(t, moved, w.only(w.ada))
	w.works(made.ID, "u-ada")
	w.age(made.ID, -2*time.Hour, -time.Hour)
	w.works(made.ID, "u-ada")
	_, err = integration.Delete(t.Context(), w.db.App, w.integrations, w.TenantID, first.ID)
	require.NoError(t, err, "nothing hangs on it any more")

	w.tokens.broken.Store(1)
	w.integration = w.integrate(w.World, "Linear of a third team")
	_, err = w.connections.Complete(t.Context(), w.ada, w.begin(w.ada, "u-ada"))
	require.ErrorIs(t, err, secret.ErrBusy)
	require.Equal(t, moved.IntegrationID, w.only(w.ada).IntegrationID, "it has not moved")
	w.works(made.ID, "u-ada")
}

// Tokens that come of a code and are of no use are taken back.
func TestTokensOfNoUse(t *testing.T) {
	w := newWorld(t)
	bob := w.user(w.TenantID, tenant.Member)
	w.api.Store(http.StatusInternalServerError)
	_, err := w.connections.Complete(t.Context(), w.ada, w.begin(w.ada, "u-ada"))
	says(t, err, "the connection cannot be made: ")
	w.api.Store(0)
	require.Equal(t, 1, w.authority.Given())
	require.Zero(t, w.authority.Allowed(), "nobody knows whose they were")

	made := w.connect(w.ada, "u-ada")
	_, err = w.connections.Complete(t.Context(), bob, w.begin(bob, "u-ada"))
	says(t, err, "another user of the tenant is connected as this person")
	require.Equal(t, 1, w.authority.Allowed(), "the first one's")
	w.works(made.ID, "u-ada")

	r := w.begin(bob, "")
	_, err = w.connections.Complete(t.Context(), bob, r)
	says(t, err, "the provider does not say who you are")
	require.Equal(t, 1, w.authority.Allowed())

	r = w.begin(bob, "u-bob")
	w.exec(`update users set status = 'disabled' where id = $1`, bob.UserID)
	ctx, cancel := context.WithCancel(t.Context())
	w.visited = cancel // and a user who has gone away is no reason to keep them
	_, err = w.connections.Complete(ctx, bob, r)
	require.Error(t, err)
	require.Equal(t, 1, w.authority.Allowed())
	require.NotContains(t, w.logs.String(), "tokens that nobody keeps could not be revoked")
}

// What the provider does not do leaves nothing behind; what the platform does not finish can be begun again.
func TestConnectingThatFails(t *testing.T) {
	w := newWorld(t)
	r := w.begin(w.ada, "u-ada")
	w.authority.Down(http.StatusServiceUnavailable)
	_, err := w.connections.Complete(t.Context(), w.ada, r)
	says(t, err, "the connection cannot be made: the authorization server answers with HTTP status 503")
	w.authority.Down(0)

	r = w.begin(w.ada, "u-ada")
	w.api.Store(http.StatusInternalServerError)
	_, err = w.connections.Complete(t.Context(), w.ada, r)
	says(t, err, "the connection cannot be made: ")
	w.api.Store(0)
	require.Empty(t, w.list(w.ada))

	r = w.begin(w.ada, "u-ada")
	w.tokens.broken.Store(1)
	_, err = w.connections.Complete(t.Context(), w.ada, r)
	require.ErrorIs(t, err, secret.ErrBusy)
	left := w.list(w.ada)
	require.Len(t, left, 1)
	require.Equal(t, "it was not completed", *left[0].Reason)
	_, err = w.whoami(w.connections, left[0].ID)
	says(t, err, "the user has to connect again: it was not completed")
	require.Equal(t, left[0].ID, w.connect(w.ada, "u-ada").ID)
	w.works(left[0].ID, "u-ada")
}
