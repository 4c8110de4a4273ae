package oauth_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/agentplatform/agentplatform/pkg/egress"
	"github.com/agentplatform/agentplatform/pkg/oauth"
	"github.com/agentplatform/agentplatform/pkg/oauth/oauthtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func client(t *testing.T) *http.Client {
	c := egress.New(egress.Config{Loopback: true})
	t.Cleanup(c.CloseIdleConnections)
	return c
}

func TestClientCredentials(t *testing.T) {
	s := oauthtest.New(t)
	g := oauth.Grant{TokenURL: s.TokenURL(), ClientID: s.ClientID, ClientSecret: s.ClientSecret, Scopes: []string{"read", "write"}, Resource: "https://mcp.example.test/"}
	for _, postOnly := range []bool{false, true} {
		s.PostOnly = postOnly
		token, err := g.Token(t.Context(), client(t))
		require.NoError(t, err)
		require.NotEmpty(t, token.Access)
		require.Empty(t, token.Refresh)
		require.WithinDuration(t, time.Now().Add(time.Hour), token.Expires, time.Minute)
	}
	wrong := g
	wrong.ClientSecret = "guessed"
	_, err := wrong.Token(t.Context(), client(t))
	require.EqualError(t, err, "the authorization server refuses: invalid_client: who are you, ?")
	wrong = g
	wrong.Scopes = []string{"admin"}
	_, err = wrong.Token(t.Context(), client(t))
	require.EqualError(t, err, "the authorization server refuses: invalid_scope")
}

func TestRefresh(t *testing.T) {
	s := oauthtest.New(t)
	g := oauth.Grant{TokenURL: s.TokenURL(), ClientID: s.ClientID, ClientSecret: s.ClientSecret, RefreshToken: s.Grant()}
	token, err := g.Token(t.Context(), client(t))
	require.NoError(t, err)
	require.NotEmpty(t, token.Refresh)
	first := g.RefreshToken
	g.RefreshToken = token.Refresh
	_, err = g.Token(t.Context(), client(t))
	require.NoError(t, err)
	g.RefreshToken = first
	_, err = g.Token(t.Context(), client(t))
	require.EqualError(t, err, "the authorization server refuses: invalid_grant", "its words repeat the token")
	var e *oauth.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, "invalid_grant", e.Code)

	public := oauthtest.New(t)
	public.ClientSecret = ""
	g = oauth.Grant{TokenURL: public.TokenURL(), ClientID: public.ClientID, RefreshToken: public.Grant()}
	_, err = g.Token(t.Context(), client(t))
	require.NoError(t, err)
}

// serve answers every request so.
func serve(t *testing.T, status int, body string) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestAnswersThatAreNoTokens(t *testing.T) {
	for body, says := range map[string]string{
		"":       "the authorization server does not answer with a token",
		"<html>": "the authorization server does not answer with a token",
		`{}`:     "the authorization server gives a token that is not a bearer's",
		`{"access_token":"a","token_type":"mac"}`:                                                          "the authorization server gives a token that is not a bearer's",
		`{"access_token":"a b","token_type":"bearer"}`:                                                     "the authorization server does not answer with a token",
		`{"access_token":"a\r\nX: y","token_type":"bearer"}`:                                               "the authorization server does not answer with a token",
		`{"token_type":"bearer"}`:                                                                          "the authorization server does not answer with a token",
		`{"access_token":"` + strings.Repeat("a", 5000) + `","token_type":"bearer"}`:                       "the authorization server gives a token longer than 4096 characters",
		`{"access_token":"a","token_type":"bearer","refresh_token":"` + strings.Repeat("\u00e9", 2) + `"}`: "the authorization server does not answer with a token",
		strings.Repeat(" ", 65<<10):                                                                        "the authorization server: the answer is too large",
	} {
		_, err := oauth.Grant{TokenURL: serve(t, 200, body), ClientID: "c", ClientSecret: "s"}.Token(t.Context(), client(t))
		require.EqualError(t, err, says, "%.80s", body)
	}
	for body, expires := range map[string]time.Duration{`60`: time.Minute, `"60"`: time.Minute, `60.5`: time.Minute, `null`: 0, `-5`: 0, `0`: 0, `"soon"`: 0, `1e300`: 10 * 365 * 24 * time.Hour} {
		token, err := oauth.Grant{TokenURL: serve(t, 200, `{"access_token":"a","token_type":"BEARER","expires_in":`+body+`}`), ClientID: "c", ClientSecret: "s"}.Token(t.Context(), client(t))
		require.NoError(t, err)
		if expires == 0 {
			require.True(t, token.Expires.IsZero(), body)
		} else {
			require.WithinDuration(t, time.Now().Add(expires), token.Expires, 10*time.Second, body)
		}
	}
	_, err := oauth.Grant{TokenURL: serve(t, 500, "secret s"), ClientID: "c", ClientSecret: "s"}.Token(t.Context(), client(t))
	require.EqualError(t, err, "the authorization server answers with HTTP status 500")
	_, err = oauth.Grant{TokenURL: "https://169.254.169.254/token", ClientID: "c", ClientSecret: "s"}.Token(t.Context(), client(t))
	require.EqualError(t, err, "the authorization server: the host has no address on the internet")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = oauth.Grant{TokenURL: serve(t, 200, ""), ClientID: "c", ClientSecret: "s"}.Token(ctx, client(t))
	require.Equal(t, context.Canceled, err)
}

func TestDiscover(t *testing.T) {
	s := oauthtest.New(t)
	resource := httptest.NewServer(s.Protect("/mcp", http.NotFoundHandler()))
	defer resource.Close()
	found, err := oauth.Discover(t.Context(), client(t), resource.URL+"/mcp?x=y")
	require.NoError(t, err)
	require.Equal(t, s.TokenURL(), found)
	_, err = oauth.Discover(t.Context(), client(t), resource.URL+"/elsewhere")
	require.EqualError(t, err, "the authorization server does not say where its token endpoint is: give its URL")
}

// documents is a resource and authorization server that describes itself with these documents; %s is its URL.
func documents(t *testing.T, challenge string, places map[string]string) string {
	var at string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := places[r.URL.Path]
		if !ok {
			if challenge != "" {
				w.Header().Set("WWW-Authenticate", strings.ReplaceAll(challenge, "%s", at))
			}
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprint(w, strings.ReplaceAll(body, "%s", at))
	}))
	t.Cleanup(s.Close)
	at = s.URL
	return at
}

func TestDiscoverElsewhere(t *testing.T) {
	metadata, resource := `{"issuer":"%s","token_endpoint":"%s/token"}`, `{"resource":"%s/mcp","authorization_servers":["%s"]}`
	for name, c := range map[string]struct {
		challenge string
		places    map[string]string
		says      string // empty: found
	}{
		"its own server":      {"", map[string]string{"/.well-known/oauth-authorization-server": metadata}, ""},
		"OpenID":              {"", map[string]string{"/.well-known/openid-configuration": metadata}, ""},
		"at the root":         {"", map[string]string{"/.well-known/oauth-protected-resource": strings.Replace(resource, "/mcp", "", 1), "/.well-known/oauth-authorization-server": metadata}, ""},
		"where it says":       {`Basic, Bearer realm="x", resource_metadata="%s/there"`, map[string]string{"/there": resource, "/.well-known/oauth-authorization-server": metadata}, ""},
		"a path":              {"", map[string]string{"/.well-known/oauth-protected-resource/mcp": `{"resource":"%s/mcp","authorization_servers":["%s/a"]}`, "/a/.well-known/openid-configuration": `{"issuer":"%s/a/","token_endpoint":"%s/token"}`}, ""},
		"nobody":              {"", nil, "the authorization server does not say where its token endpoint is: give its URL"},
		"garbage":             {`Bearer resource_metadata=,,"`, map[string]string{"/.well-known/oauth-authorization-server": "<html>"}, "the authorization server does not say where its token endpoint is: give its URL"},
		"another resource":    {"", map[string]string{"/.well-known/oauth-protected-resource/mcp": `{"resource":"https://bank.example/","authorization_servers":["%s"]}`}, "the server describes the authorization of another resource than itself"},
		"another path":        {"", map[string]string{"/.well-known/oauth-protected-resource/mcp": `{"resource":"%s/other","authorization_servers":["%s"]}`}, "the server describes the authorization of another resource than itself"},
		"no server":           {"", map[string]string{"/.well-known/oauth-protected-resource/mcp": `{"resource":"%s/mcp"}`}, "the server names no authorization server"},
		"metadata service":    {"", map[string]string{"/.well-known/oauth-protected-resource/mcp": `{"resource":"%s/mcp","authorization_servers":["http://169.254.169.254"]}`}, "the authorization server's description: the host has no address on the internet"},
		"a file":              {"", map[string]string{"/.well-known/oauth-protected-resource/mcp": `{"resource":"%s/mcp","authorization_servers":["file:///etc"]}`}, "the name of the authorization server cannot be understood"},
		"another issuer":      {"", map[string]string{"/.well-known/oauth-authorization-server": `{"issuer":"https://bank.example","token_endpoint":"%s/token"}`}, "the authorization server says that it is another one"},
		"no token endpoint":   {"", map[string]string{"/.well-known/oauth-authorization-server": `{"issuer":"%s"}`}, "the authorization server names no token endpoint"},
		"a challenge to none": {`Bearer resource_metadata="http://10.0.0.1/x"`, nil, "the authorization server's description: the host has no address on the internet"},
	} {
		at := documents(t, c.challenge, c.places)
		found, err := oauth.Discover(t.Context(), client(t), at+"/mcp")
		if c.says != "" {
			require.EqualError(t, err, c.says, name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, at+"/token", found, name)
	}
}
