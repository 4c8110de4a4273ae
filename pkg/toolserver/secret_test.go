package toolserver_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/egress"
	"github.com/agentplatform/agentplatform/pkg/oauth/oauthtest"
	"github.com/agentplatform/agentplatform/pkg/secret"
	"github.com/agentplatform/agentplatform/pkg/text"
	"github.com/agentplatform/agentplatform/pkg/toolserver"
)

// kept is the server's secret.
func (w *world) kept(id string) (string, error) {
	name, err := secret.Of(w.TenantID, "servers", id)
	require.NoError(w.t, err)
	return w.secrets.Get(w.t.Context(), name)
}

// hidden holds that no row and no answer has the secret.
func (w *world) hidden(id, what string) {
	w.t.Helper()
	s, err := toolserver.Get(w.t.Context(), w.db.App.In(w.TenantID), id)
	require.NoError(w.t, err)
	shown, err := json.Marshal(s)
	require.NoError(w.t, err)
	require.NotContains(w.t, string(shown), what)
	for _, table := range []string{"tool_servers", "tool_server_tools", "audit_outbox"} {
		var rows string
		require.NoError(w.t, w.db.Superuser(w.t).QueryRow(w.t.Context(), `select coalesce(string_agg(t::text, ' '), '') from `+table+` t`).Scan(&rows))
		require.NotContains(w.t, rows, what)
	}
}

func TestCredentialsGoToTheServer(t *testing.T) {
	w := newWorld(t)
	server := serve(t, nil, "get_issue")
	s := w.add("tracker", server.url, with(toolserver.Credential{Type: toolserver.Bearer, Token: "t0ken-one"}))
	require.Nil(t, s.Error)
	require.Equal(t, "Bearer t0ken-one", server.last().Get("Authorization"))
	require.Equal(t, toolserver.Auth{Type: toolserver.Bearer}, s.Auth)
	w.hidden(s.ID, "t0ken-one")

	update := func(n toolserver.Settings) (toolserver.Server, bool, error) {
		return w.servers.Update(w.Context, w.outbox, w.TenantID, s.ID, n)
	}
	changed, relist, err := update(toolserver.Settings{Auth: set(toolserver.Credential{Type: toolserver.APIKey, Header: "x-api-key", Key: "k3y"})})
	require.NoError(t, err)
	require.True(t, relist)
	require.Equal(t, "x-api-key", *changed.Auth.Header)
	o := w.turn("*")
	_, err = w.call(o, "tracker__get_issue", `{}`)
	require.NoError(t, err)
	require.Equal(t, "k3y", server.last().Get("X-Api-Key"))
	require.Empty(t, server.last().Get("Authorization"))
	w.hidden(s.ID, "k3y")
	kept, err := w.kept(s.ID)
	require.NoError(t, err)
	require.NotContains(t, kept, "t0ken-one", "the last one only")

	_, relist, err = update(toolserver.Settings{Timeout: set(480)})
	require.NoError(t, err)
	require.False(t, relist)
	require.Equal(t, 8*time.Minute, w.turn("*").Tools()[0].Timeout)
	changed, _, err = update(toolserver.Settings{Auth: text.Patch[toolserver.Credential]{Set: true}})
	require.NoError(t, err)
	require.Equal(t, toolserver.NoAuth, changed.Auth.Type)
	_, err = w.kept(s.ID)
	require.ErrorIs(t, err, secret.ErrMissing)
	w.refresh(s.ID)
	require.Empty(t, server.last().Get("X-Api-Key"))

	_, _, err = update(toolserver.Settings{Auth: set(toolserver.Credential{Type: toolserver.Bearer, Token: "t0ken-two"})})
	require.NoError(t, err)
	_, err = w.servers.Remove(w.Context, w.outbox, w.TenantID, s.ID)
	require.NoError(t, err)
	_, err = w.kept(s.ID)
	require.ErrorIs(t, err, secret.ErrMissing, "a secret goes with its server")
	require.Empty(t, offered(w.turn("*")))
	_, err = w.servers.Remove(w.Context, w.outbox, w.TenantID, s.ID)
	says(t, err, "tool server not found")
}

// What was given for one place is not sent to another.
func TestAnotherURLIsAnotherServer(t *testing.T) {
	w := newWorld(t)
	one, two := serve(t, nil, "get_issue"), serve(t, nil, "get_issue")
	s := w.add("tracker", one.url, with(toolserver.Credential{Type: toolserver.Bearer, Token: "t0ken"}))
	update := func(n toolserver.Settings) error {
		_, _, err := w.servers.Update(w.Context, w.outbox, w.TenantID, s.ID, n)
		return err
	}
	says(t, update(toolserver.Settings{URL: set(two.url)}), "auth must be given again with a URL of another origin: what was given for the one is not sent to the other")
	require.NoError(t, update(toolserver.Settings{URL: set(one.url + "?x=y")}), "the same origin")
	w.refresh(s.ID)
	require.NoError(t, update(toolserver.Settings{URL: set(two.url), Auth: set(toolserver.Credential{Type: toolserver.Bearer, Token: "other"})}))
	require.Empty(t, offered(w.turn("*")), "nobody has approved what that one lists")
	after := w.refresh(s.ID)
	require.Equal(t, "Bearer other", two.last().Get("Authorization"))
	require.NotNil(t, after.ListedAt)
	require.Equal(t, []string{"tracker__get_issue"}, offered(w.turn("*")), "whoever changed it asked for the list")
}

func client(s *oauthtest.Server) toolserver.Credential {
	return toolserver.Credential{Type: toolserver.OAuth, ClientID: s.ClientID, ClientSecret: s.ClientSecret}
}

func TestClientCredentials(t *testing.T) {
	w := newWorld(t)
	authority := oauthtest.New(t)
	server := serve(t, authority.Protect, "get_issue")
	s := w.add("tracker", server.url, with(client(authority)), func(n *toolserver.NewServer) { n.Scopes = set([]string{"read"}) })
	require.Nil(t, s.Error)
	require.Equal(t, authority.TokenURL(), *s.Auth.TokenURL, "it was looked for, and is kept")
	w.hidden(s.ID, authority.ClientSecret)
	require.Equal(t, 1, authority.Given())
	for range 3 {
		_, err := w.call(w.turn("*"), "tracker__get_issue", `{}`)
		require.NoError(t, err)
	}
	require.Equal(t, 1, authority.Given(), "a token is used while it is good")

	// The authority takes it back: the server says so, and another one is asked for. Also in a session that is open.
	o := w.turn("*")
	_, err := w.call(o, "tracker__get_issue", `{}`)
	require.NoError(t, err)
	authority.Expire()
	_, err = w.call(o, "tracker__get_issue", `{}`)
	require.NoError(t, err)
	require.Equal(t, 2, authority.Given())

	wrong := client(authority)
	wrong.ClientSecret = "guessed"
	s = w.add("wrong", server.url, with(wrong))
	require.Equal(t, "the authorization server refuses: invalid_client: who are you, ?", *s.Error)
	silent := serve(t, nil, "get_issue")
	s = w.add("silent", silent.url, with(client(authority)))
	require.Equal(t, "the authorization server does not say where its token endpoint is: give its URL", *s.Error)
	named := client(authority)
	named.TokenURL = authority.TokenURL()
	require.Nil(t, w.add("named", silent.url, with(named)).Error)
}

// A refresh token is good once: of many who find the access token at its end, one renews it, and all go on with what that one got.
func TestOneRenewsTheToken(t *testing.T) {
	w := newWorld(t)
	authority := oauthtest.New(t)
	authority.Lifetime = 10 * time.Minute
	credential := client(authority)
	credential.RefreshToken = authority.Grant()
	server := serve(t, authority.Protect, "get_issue")
	s := w.add("tracker", server.url, with(credential))
	require.Nil(t, s.Error)
	other := toolserver.New(w.db.App, w.secrets, egress.Config{Loopback: true}) // another process
	defer other.Close()
	for round := range 3 {
		authority.Expire()
		var all sync.WaitGroup
		for n := range 12 {
			all.Go(func() {
				servers := w.servers
				if n%2 == 0 {
					servers = other
				}
				after, err := servers.Refresh(t.Context(), w.TenantID, s.ID, w.UserID)
				require.NoError(t, err)
				require.Nil(t, after.Error)
			})
		}
		all.Wait()
		require.Equal(t, round+2, authority.Given())
	}
	w.hidden(s.ID, credential.RefreshToken)
	kept, err := w.kept(s.ID)
	require.NoError(t, err)
	require.NotContains(t, kept, credential.RefreshToken, "it was replaced")
}

// Before its end a token is renewed; whoever cannot, since another does, goes on with it.
func TestATokenIsRenewedEarly(t *testing.T) {
	w := newWorld(t)
	authority := oauthtest.New(t)
	server := serve(t, authority.Protect, "get_issue")
	s := w.add("tracker", server.url, with(client(authority)))
	age := func(obtained, expires time.Duration) {
		text, err := w.kept(s.ID)
		require.NoError(t, err)
		var k map[string]any
		require.NoError(t, json.Unmarshal([]byte(text), &k))
		k["obtained"], k["expires"] = time.Now().Add(obtained), time.Now().Add(expires)
		b, err := json.Marshal(k)
		require.NoError(t, err)
		name, err := secret.Of(w.TenantID, "servers", s.ID)
		require.NoError(t, err)
		require.NoError(t, w.secrets.Put(t.Context(), name, string(b)))
	}
	for _, c := range []struct {
		obtained, expires time.Duration
		renewed           bool
	}{
		{-30 * time.Minute, 30 * time.Minute, false},
		{-50 * time.Minute, 6 * time.Minute, false},
		{-56 * time.Minute, 4 * time.Minute, true},
		{-1 * time.Minute, time.Minute, false}, // a short life
		{-100 * time.Second, 10 * time.Second, true},
		{-2 * time.Hour, -time.Hour, true},
	} {
		before := authority.Given()
		age(c.obtained, c.expires)
		require.Nil(t, w.refresh(s.ID).Error)
		require.Equal(t, c.renewed, authority.Given() > before, c)
	}

	age(-56*time.Minute, 4*time.Minute)
	before := authority.Given()
	w.exec(`update tool_servers set secret_lease = clock_timestamp() + interval '1 hour'`)
	require.Nil(t, w.refresh(s.ID).Error)
	require.Equal(t, before, authority.Given())
	w.exec(`update tool_servers set secret_lease = clock_timestamp() - interval '1 second'`) // whoever had it died
	require.Nil(t, w.refresh(s.ID).Error)
	require.Equal(t, before+1, authority.Given())
	var free bool
	require.NoError(t, w.db.Superuser(t).QueryRow(t.Context(), `select secret_lease is null from tool_servers`).Scan(&free))
	require.True(t, free)
}

// A store that gives the value before the last is asked again, and not believed.
func TestAStaleSecret(t *testing.T) {
	w := newWorld(t)
	server := serve(t, nil, "get_issue")
	s := w.add("tracker", server.url, with(toolserver.Credential{Type: toolserver.Bearer, Token: "t0ken"}))
	w.exec(`update tool_servers set secret_version = 9`)
	before := server.count(http.MethodPost)
	_, err := w.servers.Refresh(t.Context(), w.TenantID, s.ID, w.UserID)
	require.EqualError(t, err, "toolserver: the store of secrets gives an older value than the last one")
	require.Equal(t, before, server.count(http.MethodPost))
	name, err := secret.Of(w.TenantID, "servers", s.ID)
	require.NoError(t, err)
	require.NoError(t, w.secrets.Delete(t.Context(), name))
	require.Equal(t, "the credential of the tool server tracker is gone: give it again", *w.refresh(s.ID).Error)
}

func TestWhatIsRefused(t *testing.T) {
	w := newWorld(t)
	const at = "https://mcp.example.test/"
	long := strings.Repeat("x", 2049)
	for name, c := range map[string]struct {
		name string
		n    toolserver.Settings
		says string
	}{
		"two underscores":  {"a__b", toolserver.Settings{URL: set(at)}, "name must be 1 to 40 letters, digits, hyphens and single underscores, none of them at an end"},
		"underscore first": {"_a", toolserver.Settings{URL: set(at)}, "name must be 1 to 40 letters, digits, hyphens and single underscores, none of them at an end"},
		"underscore last":  {"a_", toolserver.Settings{URL: set(at)}, "name must be 1 to 40 letters, digits, hyphens and single underscores, none of them at an end"},
		"long name":        {strings.Repeat("a", 41), toolserver.Settings{URL: set(at)}, "name must be 1 to 40 letters, digits, hyphens and single underscores, none of them at an end"},
		"no URL":           {"a", toolserver.Settings{}, "url must not be empty"},
		"null URL":         {"a", toolserver.Settings{URL: text.Patch[string]{Set: true}}, "url must not be null"},
		"http":             {"a", toolserver.Settings{URL: set("http://mcp.example.test")}, "url must be https; http is for this machine only"},
		"timeout":          {"a", toolserver.Settings{URL: set(at), Timeout: set(481)}, "timeoutSeconds must be from 1 to 480 seconds"},
		"no timeout":       {"a", toolserver.Settings{URL: set(at), Timeout: set(0)}, "timeoutSeconds must be from 1 to 480 seconds"},
		"type":             {"a", toolserver.Settings{URL: set(at), Auth: set(toolserver.Credential{Type: "BASIC"})}, "auth.type must be NONE, BEARER, API_KEY or OAUTH"},
		"no token":         {"a", toolserver.Settings{URL: set(at), Auth: set(toolserver.Credential{Type: toolserver.Bearer})}, "auth.token must be 1 to 2048 bytes that a header can carry"},
		"token of lines":   {"a", toolserver.Settings{URL: set(at), Auth: set(toolserver.Credential{Type: toolserver.Bearer, Token: "a\r\nHost: b"})}, "auth.token must be 1 to 2048 bytes that a header can carry"},
		"long token":       {"a", toolserver.Settings{URL: set(at), Auth: set(toolserver.Credential{Type: toolserver.Bearer, Token: long})}, "auth.token must be 1 to 2048 bytes that a header can carry"},
		"header":           {"a", toolserver.Settings{URL: set(at), Auth: set(toolserver.Credential{Type: toolserver.APIKey, Header: "a b", Key: "k"})}, "auth.header must be the name of a header that is for a key"},
		"host":             {"a", toolserver.Settings{URL: set(at), Auth: set(toolserver.Credential{Type: toolserver.APIKey, Header: "Host", Key: "k"})}, "auth.header must be the name of a header that is for a key"},
		"session":          {"a", toolserver.Settings{URL: set(at), Auth: set(toolserver.Credential{Type: toolserver.APIKey, Header: "Mcp-Session-Id", Key: "k"})}, "auth.header must be the name of a header that is for a key"},
		"no key":           {"a", toolserver.Settings{URL: set(at), Auth: set(toolserver.Credential{Type: toolserver.APIKey, Header: "x-key"})}, "auth.key must be 1 to 2048 bytes that a header can carry"},
		"no client":        {"a", toolserver.Settings{URL: set(at), Auth: set(toolserver.Credential{Type: toolserver.OAuth, ClientSecret: "s"})}, "auth.clientId must not be empty"},
		"no secret":        {"a", toolserver.Settings{URL: set(at), Auth: set(toolserver.Credential{Type: toolserver.OAuth, ClientID: "c"})}, "auth needs a clientSecret, a refreshToken or both"},
		"token URL":        {"a", toolserver.Settings{URL: set(at), Auth: set(toolserver.Credential{Type: toolserver.OAuth, ClientID: "c", ClientSecret: "s", TokenURL: "http://a.test"})}, "auth.tokenUrl must be https; http is for this machine only"},
	} {
		_, err := w.servers.Add(w.Context, w.outbox, w.TenantID, toolserver.NewServer{Name: c.name, Settings: c.n})
		require.Error(t, err, name)
		says(t, err, c.says)
	}
	servers, err := toolserver.List(t.Context(), w.db.App.In(w.TenantID), nil, 10)
	require.NoError(t, err)
	require.Empty(t, servers)
	_, err = w.servers.Add(w.Context, w.outbox, w.TenantID, toolserver.NewServer{Name: "a", Settings: toolserver.Settings{URL: set(at)}})
	require.NoError(t, err)
	_, err = w.servers.Add(w.Context, w.outbox, w.TenantID, toolserver.NewServer{Name: "a", Settings: toolserver.Settings{URL: set(at), Auth: set(toolserver.Credential{Type: toolserver.Bearer, Token: "t"})}})
	says(t, err, "a tool server has the name a already")
}
