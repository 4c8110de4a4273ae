package pool_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/oauth2"
)

const callback = "http://127.0.0.1:45871/callback"

func (l *local) oauth(scopes ...string) *oauth2.Config {
	return &oauth2.Config{ClientID: l.ClientID(), RedirectURL: callback, Scopes: scopes,
		Endpoint: oauth2.Endpoint{AuthURL: l.url + "/oauth2/authorize", TokenURL: l.url + "/oauth2/token"}}
}

// browser follows redirects within the pool, keeps cookies, and stops where the client's callback would be.
func (l *local) browser(t testing.TB) *http.Client {
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	return &http.Client{Jar: jar, CheckRedirect: func(req *http.Request, _ []*http.Request) error {
		if "http://"+req.URL.Host != l.url {
			return http.ErrUseLastResponse
		}
		return nil
	}}
}

func get(t testing.TB, c *http.Client, url string) (*http.Response, string) {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	return do(t, c, req)
}

var formToken = regexp.MustCompile(`name="_csrf" value="([^"]+)"`)

// submit posts the form of a page that the browser shows.
func submit(t testing.TB, c *http.Client, shown *http.Response, body, username, password string) (*http.Response, string) {
	token := formToken.FindStringSubmatch(body)
	require.NotNil(t, token, body)
	form := url.Values{"_csrf": {token[1]}, "username": {username}, "password": {password}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, shown.Request.URL.String(), strings.NewReader(form.Encode()))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", shown.Request.URL.Scheme+"://"+shown.Request.URL.Host)
	return do(t, c, req)
}

// code signs alice in by the form and gives the parameters that the client's callback gets.
func (l *local) code(t testing.TB, c *oauth2.Config, verifier string, options ...oauth2.AuthCodeOption) url.Values {
	b := l.browser(t)
	page, body := get(t, b, c.AuthCodeURL("the state", append(options, oauth2.S256ChallengeOption(verifier))...))
	require.Equal(t, http.StatusOK, page.StatusCode, body)
	answer, body := submit(t, b, page, body, "alice@acme.test", password)
	require.Equal(t, http.StatusSeeOther, answer.StatusCode, body)
	back, err := answer.Location()
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(back.String(), c.RedirectURL), back)
	return back.Query()
}

func oauthCode(err error) string {
	var e *oauth2.RetrieveError
	if errors.As(err, &e) {
		return e.ErrorCode
	}
	return ""
}

func TestCodeFlow(t *testing.T) {
	l := start(t, nil)
	c := l.oauth("openid", "email", "aws.cognito.signin.user.admin")
	verifier := oauth2.GenerateVerifier()
	q := l.code(t, c, verifier, oauth2.SetAuthURLParam("nonce", "n-1"))
	require.Equal(t, "the state", q.Get("state"))
	token, err := c.Exchange(t.Context(), q.Get("code"), oauth2.VerifierOption(verifier))
	require.NoError(t, err)
	require.Equal(t, "Bearer", token.TokenType)
	require.InDelta(t, 3600, token.ExpiresIn, 1)

	id, access := l.claims(t, token.Extra("id_token").(string)), l.claims(t, token.AccessToken)
	require.Equal(t, "0199-tenant", id["custom:tenant_id"])
	require.Equal(t, "n-1", id["nonce"])
	require.NotEmpty(t, id["at_hash"])
	require.Equal(t, "openid email aws.cognito.signin.user.admin", access["scope"])
	require.Equal(t, "0199-tenant", access["custom:tenant_id"])

	resp, body := get(t, c.Client(t.Context(), token), l.url+"/oauth2/userInfo")
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.JSONEq(t, `{"sub":"`+l.alice.Sub+`","username":"`+l.alice.Sub+`","email":"alice@acme.test","email_verified":"true"}`, body)

	renewed, err := c.TokenSource(t.Context(), &oauth2.Token{RefreshToken: token.RefreshToken}).Token()
	require.NoError(t, err)
	require.Equal(t, id["origin_jti"], l.claims(t, renewed.Extra("id_token").(string))["origin_jti"])
	require.Equal(t, token.RefreshToken, renewed.RefreshToken, "not rotated: the client keeps its own")

	resp, _ = l.post(t, "/oauth2/revoke", "application/x-www-form-urlencoded", "", "client_id="+l.ClientID()+"&token="+token.RefreshToken)
	require.Equal(t, http.StatusOK, resp.StatusCode)
	_, err = c.TokenSource(t.Context(), &oauth2.Token{RefreshToken: token.RefreshToken}).Token()
	require.Equal(t, "invalid_grant", oauthCode(err))
	resp, _ = get(t, c.Client(t.Context(), token), l.url+"/oauth2/userInfo")
	require.Equal(t, http.StatusUnauthorized, resp.StatusCode)
	require.Contains(t, resp.Header.Get("WWW-Authenticate"), "invalid_token")
}

func TestCodesAreForOneUseByTheirClient(t *testing.T) {
	l := start(t, nil)
	c := l.oauth()
	verifier := oauth2.GenerateVerifier()

	code := l.code(t, c, verifier).Get("code")
	token, err := c.Exchange(t.Context(), code, oauth2.VerifierOption(verifier))
	require.NoError(t, err)
	_, err = c.Exchange(t.Context(), code, oauth2.VerifierOption(oauth2.GenerateVerifier()))
	require.Equal(t, "invalid_grant", oauthCode(err))
	_, err = c.TokenSource(t.Context(), &oauth2.Token{RefreshToken: token.RefreshToken}).Token()
	require.NoError(t, err, "who does not know the verifier can not end the session")
	_, err = c.Exchange(t.Context(), code, oauth2.VerifierOption(verifier))
	require.Equal(t, "invalid_grant", oauthCode(err))
	_, err = c.TokenSource(t.Context(), &oauth2.Token{RefreshToken: token.RefreshToken}).Token()
	require.Equal(t, "invalid_grant", oauthCode(err), "a replayed code ends the session that it became")

	code = l.code(t, c, verifier).Get("code")
	_, err = c.Exchange(t.Context(), code, oauth2.VerifierOption(oauth2.GenerateVerifier()))
	require.Equal(t, "invalid_grant", oauthCode(err))
	_, err = c.Exchange(t.Context(), code, oauth2.VerifierOption(verifier))
	require.Equal(t, "invalid_grant", oauthCode(err), "a failed try uses the code up")

	code = l.code(t, c, verifier).Get("code")
	_, err = c.Exchange(t.Context(), code)
	require.Equal(t, "invalid_request", oauthCode(err), "no verifier")

	code = l.code(t, c, verifier).Get("code")
	other := l.oauth()
	other.RedirectURL = callback + "2"
	_, err = other.Exchange(t.Context(), code, oauth2.VerifierOption(verifier))
	require.Equal(t, "invalid_grant", oauthCode(err))

	code = l.code(t, c, verifier).Get("code")
	l.advance(5 * 60e9)
	_, err = c.Exchange(t.Context(), code, oauth2.VerifierOption(verifier))
	require.Equal(t, "invalid_grant", oauthCode(err), "after five minutes")
}

func TestAuthorizeRefusesAPage(t *testing.T) {
	l := start(t, nil)
	for _, uri := range []string{"", "http://evil.test/callback", "https://127.0.0.1:1/", "http://localhost.evil.test/", "http://127.0.0.1@evil.test/", "http://127.0.0.1:80@evil.test/",
		"http://user@127.0.0.1/", `http://127.0.0.1\@evil.test/`, "http://127.0.0.1.evil.test/", "//127.0.0.1/", "http:127.0.0.1", "javascript:alert(1)", "http://127.0.0.1/#x", "http://127.0.0.1/\r\nx"} {
		c := l.oauth()
		c.RedirectURL = uri
		resp, body := get(t, l.browser(t), c.AuthCodeURL("s", oauth2.S256ChallengeOption(oauth2.GenerateVerifier())))
		require.Equal(t, http.StatusBadRequest, resp.StatusCode, uri)
		require.Empty(t, resp.Header.Get("Location"))
		require.Contains(t, body, "redirect_uri is not allowed")
		require.NotContains(t, body, "<form")
	}
	for _, uri := range []string{"http://127.0.0.1:1/", "http://localhost:65000/cb?x=1", "http://127.0.0.1", l.url, l.url + "/"} {
		c := l.oauth()
		c.RedirectURL = uri
		resp, body := get(t, l.browser(t), c.AuthCodeURL("s", oauth2.S256ChallengeOption(oauth2.GenerateVerifier())))
		require.Equal(t, http.StatusOK, resp.StatusCode, uri+body)
	}
	c := l.oauth()
	c.ClientID = "nobody"
	resp, body := get(t, l.browser(t), c.AuthCodeURL("s"))
	require.Equal(t, http.StatusBadRequest, resp.StatusCode)
	require.Contains(t, body, "client_id")
}

func TestAuthorizeRefusesBackAtTheClient(t *testing.T) {
	l := start(t, nil)
	pkce := oauth2.S256ChallengeOption(oauth2.GenerateVerifier())
	set := oauth2.SetAuthURLParam
	for name, c := range map[string]struct {
		code    string
		options []oauth2.AuthCodeOption
	}{
		"no PKCE":           {"invalid_request", nil},
		"plain PKCE":        {"invalid_request", []oauth2.AuthCodeOption{pkce, set("code_challenge_method", "plain")}},
		"no hash":           {"invalid_request", []oauth2.AuthCodeOption{pkce, set("code_challenge", "short")}},
		"implicit flow":     {"unsupported_response_type", []oauth2.AuthCodeOption{pkce, set("response_type", "token")}},
		"no response type":  {"invalid_request", []oauth2.AuthCodeOption{pkce, set("response_type", "")}},
		"unknown scope":     {"invalid_scope", []oauth2.AuthCodeOption{pkce, set("scope", "openid everything")}},
		"without a sign-in": {"login_required", []oauth2.AuthCodeOption{pkce, set("prompt", "none")}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, path := range []string{"/oauth2/authorize", "/login"} {
				at := strings.Replace(l.oauth().AuthCodeURL("a&b", c.options...), "/oauth2/authorize", path, 1)
				resp, _ := get(t, l.browser(t), at)
				require.Equal(t, http.StatusSeeOther, resp.StatusCode)
				back, err := resp.Location()
				require.NoError(t, err)
				require.Equal(t, "127.0.0.1:45871", back.Host)
				require.Equal(t, c.code, back.Query().Get("error"))
				require.Equal(t, "a&b", back.Query().Get("state"))
				require.Empty(t, back.Query().Get("code"))
			}
		})
	}
	resp, _ := get(t, l.browser(t), l.oauth().AuthCodeURL("s", pkce)+"&scope=openid&scope=email")
	require.Contains(t, resp.Header.Get("Location"), "error=invalid_request")
}

func TestLoginForm(t *testing.T) {
	l := start(t, nil)
	at := l.oauth().AuthCodeURL("s", oauth2.S256ChallengeOption(oauth2.GenerateVerifier()), oauth2.SetAuthURLParam("login_hint", `"><script>`))
	b := l.browser(t)
	page, body := get(t, b, at)
	policy := page.Header.Get("Content-Security-Policy")
	require.Contains(t, policy, "default-src 'none'")
	require.Contains(t, policy, "form-action 'self' http://127.0.0.1:45871;")
	require.Equal(t, "DENY", page.Header.Get("X-Frame-Options"))
	require.Equal(t, "no-store", page.Header.Get("Cache-Control"))
	require.Contains(t, page.Header.Get("Set-Cookie"), "HttpOnly; SameSite=Lax")
	require.NotContains(t, body, "<script>")
	require.NotContains(t, body, "ZgotmplZ")
	require.NotContains(t, body, "src=")
	for _, want := range []string{`<label for="username">`, `<label for="password">`, `lang="en"`, `autocomplete="current-password"`} {
		require.Contains(t, body, want)
	}

	resp, wrong := submit(t, b, page, body, "alice@acme.test", "wrong")
	require.Equal(t, http.StatusForbidden, resp.StatusCode)
	require.Contains(t, wrong, `role="alert">Incorrect username or password.`)
	require.Contains(t, wrong, `value="alice@acme.test"`)
	require.NotContains(t, wrong, "wrong\"")
	_, unknown := submit(t, b, page, body, "nobody@acme.test", "wrong")
	require.Contains(t, unknown, `role="alert">Incorrect username or password.`)
	resp, empty := submit(t, b, page, body, "alice@acme.test", "")
	require.Equal(t, http.StatusBadRequest, resp.StatusCode)
	require.Contains(t, empty, "Enter your e-mail address")

	resp, again := submit(t, b, page, wrong, "alice@acme.test", password)
	require.Equal(t, http.StatusSeeOther, resp.StatusCode, again)
}

func TestLoginFormIsSafeFromOtherSites(t *testing.T) {
	l := start(t, nil)
	at := l.oauth().AuthCodeURL("s", oauth2.S256ChallengeOption(oauth2.GenerateVerifier()))
	b := l.browser(t)
	page, body := get(t, b, at)
	elsewhere, foreign := get(t, l.browser(t), at)
	require.NotEqual(t, formToken.FindString(body), formToken.FindString(foreign))
	_, ofOther := get(t, b, l.oauth().AuthCodeURL("another state", oauth2.S256ChallengeOption(oauth2.GenerateVerifier())))

	for name, try := range map[string]func() (*http.Response, string){
		"another browser's token": func() (*http.Response, string) { return submit(t, b, page, foreign, "alice@acme.test", password) },
		"another request's token": func() (*http.Response, string) { return submit(t, b, page, ofOther, "alice@acme.test", password) },
		"no cookie": func() (*http.Response, string) {
			return submit(t, &http.Client{}, elsewhere, foreign, "alice@acme.test", password)
		},
		"another origin": func() (*http.Response, string) {
			form := url.Values{"_csrf": {formToken.FindStringSubmatch(body)[1]}, "username": {"alice@acme.test"}, "password": {password}}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, page.Request.URL.String(), strings.NewReader(form.Encode()))
			require.NoError(t, err)
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			req.Header.Set("Origin", "http://127.0.0.1:1")
			return do(t, b, req)
		},
	} {
		resp, text := try()
		require.Equal(t, http.StatusForbidden, resp.StatusCode, name)
		require.Contains(t, text, "The form has expired", name)
	}
}

func TestTokenEndpointErrors(t *testing.T) {
	l := start(t, nil)
	id := "client_id=" + l.ClientID()
	for name, c := range map[string]struct {
		body   string
		status int
		code   string
	}{
		"nothing":            {"", 400, "invalid_request"},
		"broken form":        {"%zz", 400, "invalid_request"},
		"no client":          {"grant_type=refresh_token&refresh_token=x", 400, "invalid_request"},
		"unknown client":     {"client_id=nobody&grant_type=refresh_token", 400, "invalid_client"},
		"no grant type":      {id, 400, "invalid_request"},
		"password grant":     {id + "&grant_type=password&username=a&password=b", 400, "unsupported_grant_type"},
		"client credentials": {id + "&grant_type=client_credentials", 400, "unsupported_grant_type"},
		"no code":            {id + "&grant_type=authorization_code", 400, "invalid_request"},
		"no refresh token":   {id + "&grant_type=refresh_token", 400, "invalid_request"},
		"unknown refresh":    {id + "&grant_type=refresh_token&refresh_token=x", 400, "invalid_grant"},
		"unknown code":       {id + "&grant_type=authorization_code&code=x&redirect_uri=x&code_verifier=x", 400, "invalid_grant"},
		"repeated":           {id + "&grant_type=refresh_token&grant_type=refresh_token", 400, "invalid_request"},
		"oversized":          {id + "&x=" + strings.Repeat("a", 70<<10), 400, "invalid_request"},
	} {
		t.Run(name, func(t *testing.T) {
			resp, body := l.post(t, "/oauth2/token", "application/x-www-form-urlencoded", "", c.body)
			require.Equal(t, c.status, resp.StatusCode)
			require.Equal(t, "application/json", resp.Header.Get("Content-Type"))
			require.Equal(t, "no-store", resp.Header.Get("Cache-Control"))
			require.Contains(t, body, `{"error":"`+c.code+`"`)
		})
	}
	c := l.oauth()
	c.ClientSecret = "a secret that nobody gave"
	c.Endpoint.AuthStyle = oauth2.AuthStyleInHeader
	_, err := c.Exchange(context.Background(), "x", oauth2.VerifierOption("x"))
	require.Equal(t, "invalid_client", oauthCode(err))
	resp, body := l.post(t, "/oauth2/revoke", "application/x-www-form-urlencoded", "", id+"&token=a.b.c")
	require.Equal(t, http.StatusBadRequest, resp.StatusCode)
	require.Contains(t, body, "unsupported_token_type")
}

func TestScopes(t *testing.T) {
	l := start(t, nil)
	verifier := oauth2.GenerateVerifier()
	c := l.oauth("aws.cognito.signin.user.admin")
	token, err := c.Exchange(t.Context(), l.code(t, c, verifier).Get("code"), oauth2.VerifierOption(verifier))
	require.NoError(t, err)
	require.Nil(t, token.Extra("id_token"), "an ID token needs the scope openid")
	resp, _ := get(t, c.Client(t.Context(), token), l.url+"/oauth2/userInfo")
	require.Equal(t, http.StatusForbidden, resp.StatusCode)

	c = l.oauth("openid")
	token, err = c.Exchange(t.Context(), l.code(t, c, verifier).Get("code"), oauth2.VerifierOption(verifier))
	require.NoError(t, err)
	_, body := l.post(t, "/", amzJSON, "AWSCognitoIdentityProviderService.GetUser", `{"AccessToken":"`+token.AccessToken+`"}`)
	require.Contains(t, body, "Access Token does not have required scopes")
}

func TestLogoutAndDiscovery(t *testing.T) {
	l := start(t, nil)
	resp, _ := get(t, l.browser(t), l.url+"/logout?client_id="+l.ClientID()+"&logout_uri="+url.QueryEscape("http://localhost:3000/bye"))
	require.Equal(t, http.StatusFound, resp.StatusCode)
	require.Equal(t, "http://localhost:3000/bye", resp.Header.Get("Location"))
	resp, _ = get(t, l.browser(t), l.url+"/logout?client_id="+l.ClientID()+"&logout_uri="+url.QueryEscape("http://evil.test/"))
	require.Equal(t, http.StatusBadRequest, resp.StatusCode)

	_, body := get(t, http.DefaultClient, l.Issuer()+"/.well-known/openid-configuration")
	require.Contains(t, body, `"issuer":"`+l.Issuer()+`"`)
	require.Contains(t, body, `"jwks_uri":"`+l.JWKSURL()+`"`)
	resp, err := http.Get(l.JWKSURL())
	require.NoError(t, err)
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NotContains(t, string(raw), `"d"`, "no private part")
}
