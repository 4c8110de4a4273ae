package oauth_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/oauth"
	"github.com/agentplatform/agentplatform/pkg/oauth/oauthtest"
)

const back = "https://console.example.test/connections?from=here"

var verifier = strings.Repeat("v", 43)

// people is a server that people are sent to, from back.
func people(t *testing.T) (*oauthtest.Server, oauth.Authorization, oauth.Grant) {
	s := oauthtest.New(t)
	s.RedirectURIs = []string{back}
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections) // the browser's
	return s, oauth.Authorization{URL: s.AuthorizeURL(), ClientID: s.ClientID, RedirectURI: back, Scopes: []string{"read", "write"}, State: "a state", Verifier: verifier},
		oauth.Grant{TokenURL: s.TokenURL(), ClientID: s.ClientID, ClientSecret: s.ClientSecret, RedirectURI: back, Verifier: verifier}
}

func address(t *testing.T, a oauth.Authorization) string {
	to, err := a.Address()
	require.NoError(t, err)
	return to
}

func TestACodeGivesTokens(t *testing.T) {
	for _, inBody := range []bool{false, true} {
		s, a, g := people(t)
		s.PostOnly, g.InBody = inBody, inBody
		to := address(t, a)
		require.NotContains(t, to, verifier, "it stays with who asks")
		state, code := s.Consent(t, to, "ada")
		require.Equal(t, "a state", state)
		g.Code = code
		token, err := g.Token(t.Context(), client(t))
		require.NoError(t, err)
		require.Equal(t, []string{"read", "write"}, token.Scopes)
		require.NotEmpty(t, token.Refresh)
		request := httptest.NewRequest(http.MethodGet, "/", nil)
		request.Header.Set("Authorization", "Bearer "+token.Access)
		whose, ok := s.Whose(request)
		require.True(t, ok)
		require.Equal(t, "ada", whose)

		refreshed, err := oauth.Grant{TokenURL: g.TokenURL, ClientID: g.ClientID, ClientSecret: g.ClientSecret, InBody: inBody, RefreshToken: token.Refresh}.Token(t.Context(), client(t))
		require.NoError(t, err)
		_, err = g.Token(t.Context(), client(t))
		require.EqualError(t, err, "the authorization server refuses: invalid_grant", "its words repeat the code")
		require.True(t, oauth.Over(err))
		request.Header.Set("Authorization", "Bearer "+refreshed.Access)
		_, ok = s.Whose(request)
		require.False(t, ok, "a code that comes twice may have been stolen")
	}
}

func TestACodeIsBound(t *testing.T) {
	s, a, g := people(t)
	for name, wrong := range map[string]func(*oauth.Grant){
		"another verifier": func(g *oauth.Grant) { g.Verifier = strings.Repeat("w", 43) },
		"the challenge":    func(g *oauth.Grant) { g.Verifier = query(t, address(t, a)).Get("code_challenge") },
		"no verifier":      func(g *oauth.Grant) { g.Verifier = "" },
		"another address":  func(g *oauth.Grant) { g.RedirectURI = "https://console.example.test/connections" },
		"another code":     func(g *oauth.Grant) { g.Code = "guessed" },
	} {
		_, code := s.Consent(t, address(t, a), "ada")
		g := g
		g.Code = code
		wrong(&g)
		_, err := g.Token(t.Context(), client(t))
		require.True(t, oauth.Over(err), "%s: %v", name, err)
	}
	require.Zero(t, s.Given())
}

func TestACodeIsNotSentTwice(t *testing.T) {
	s, a, g := people(t)
	s.PostOnly = true
	_, g.Code = s.Consent(t, address(t, a), "ada")
	_, err := g.Token(t.Context(), client(t))
	require.EqualError(t, err, "the authorization server refuses: invalid_client: who are you, ?")
	g.InBody = true
	_, err = g.Token(t.Context(), client(t))
	require.NoError(t, err)
}

func TestARefusalWithAStatusOfSuccess(t *testing.T) {
	_, err := oauth.Grant{TokenURL: serve(t, 200, `{"error":"invalid_grant","error_description":"the code s3cret is old"}`), ClientID: "c", Code: "s3cret"}.Token(t.Context(), client(t))
	require.EqualError(t, err, "the authorization server refuses: invalid_grant")
	require.True(t, oauth.Over(err))
}

func query(t *testing.T, address string) url.Values {
	u, err := url.Parse(address)
	require.NoError(t, err)
	return u.Query()
}

func TestAddress(t *testing.T) {
	// The example of RFC 7636, appendix B.
	to := address(t, oauth.Authorization{URL: "https://auth.example.test/authorize?tenant=7", ClientID: "a&b", RedirectURI: back, Scopes: []string{"read:me", "write"}, Join: ",",
		State: "s", Verifier: "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", Extra: url.Values{"prompt": {"consent"}, "state": {"another"}, "audience": {"api"}}})
	require.Equal(t, url.Values{"tenant": {"7"}, "client_id": {"a&b"}, "redirect_uri": {back}, "scope": {"read:me,write"}, "state": {"s"}, "prompt": {"consent"}, "audience": {"api"},
		"response_type": {"code"}, "code_challenge": {"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"}, "code_challenge_method": {"S256"}}, query(t, to))
	require.True(t, strings.HasPrefix(to, "https://auth.example.test/authorize?"))
	for _, wrong := range []string{"", "/authorize", "https://a.test/#f", "https://%"} {
		_, err := oauth.Authorization{URL: wrong}.Address()
		require.EqualError(t, err, "the address of the authorization server cannot be understood", wrong)
	}
}

func TestScopesOfAnAnswer(t *testing.T) {
	for said, want := range map[string][]string{
		`"read write"`: {"read", "write"}, `"read,write"`: {"read", "write"}, `["read","write"]`: {"read", "write"}, `"read:a\u0000 ok"`: {"ok"}, `""`: nil, `null`: nil, `7`: nil,
		`"` + strings.Repeat("a ", 500) + `"`: strings.Split(strings.TrimSpace(strings.Repeat("a ", 100)), " "), `"` + strings.Repeat("a", 201) + `"`: nil,
	} {
		token, err := oauth.Grant{TokenURL: serve(t, 200, `{"access_token":"a","token_type":"bearer","scope":`+said+`}`), ClientID: "c", Code: "c"}.Token(t.Context(), client(t))
		require.NoError(t, err)
		require.Equal(t, want, token.Scopes, said)
	}
	token, err := oauth.Grant{TokenURL: serve(t, 200, `{"access_token":"a","token_type":"bearer"}`), ClientID: "c", Code: "c"}.Token(t.Context(), client(t))
	require.NoError(t, err)
	require.Nil(t, token.Scopes)
}

func TestRevoke(t *testing.T) {
	s, a, g := people(t)
	_, g.Code = s.Consent(t, address(t, a), "ada")
	token, err := g.Token(t.Context(), client(t))
	require.NoError(t, err)
	require.Equal(t, 1, s.Allowed())
	require.NoError(t, g.Revoke(t.Context(), client(t), s.RevokeURL(), token.Refresh))
	require.Zero(t, s.Allowed())
	require.NoError(t, g.Revoke(t.Context(), client(t), s.RevokeURL(), token.Refresh), "again")
	for _, status := range []int{400, 503} {
		require.EqualError(t, g.Revoke(t.Context(), client(t), serve(t, status, "no"), "t"), fmt.Sprintf("the authorization server answers with HTTP status %d", status))
	}
	require.EqualError(t, g.Revoke(t.Context(), client(t), "https://169.254.169.254/", "t"), "the authorization server: the host has no address on the internet")
}
