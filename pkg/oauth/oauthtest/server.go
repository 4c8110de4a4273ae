// Package oauthtest is an authorization server for tests, as strict as RFC 6749 allows: authorization codes (§4.1) with PKCE (RFC 7636) only, client credentials
// (§4.4), refresh tokens that are used once (§6), revocation (RFC 7009), RFC 8414's metadata, and a guard for resources that describes them (RFC 9728).
package oauthtest

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Server is an authorization server. Set its fields before it is asked.
type Server struct {
	URL          string
	ClientID     string
	ClientSecret string        // empty: the client is a public one
	PostOnly     bool          // the secret is taken in the body only
	Scopes       []string      // that may be asked for
	Lifetime     time.Duration // of an access token; 0: an hour
	Slow         func()        // called before each token is given
	Gives        func()        // called when a token is about to be sent
	RedirectURIs []string      // that people may be sent back to
	NoRefresh    bool          // a code gives no refresh token
	Stays        bool          // a refresh token is good until it is revoked, and is not given again

	mu     sync.Mutex
	access map[string]access
	grants []*grant
	codes  map[string]*code
	given  int
	asked  int
	down   int // the status that the token endpoint answers with; 0: none
}

// access is a token and when it ends; grant is nil: of the client itself.
type access struct {
	ends  time.Time
	grant *grant
}

// grant is what a person has allowed.
type grant struct {
	person  string
	scopes  []string
	refresh string   // the token that is good now
	old     []string // those that were good
	revoked bool
}

// New starts a server with the client "platform" and its secret; it ends with the test.
func New(t testing.TB) *Server {
	s := &Server{ClientID: "platform", ClientSecret: "cl:ent s€cret", Scopes: []string{"read", "write"}, access: map[string]access{},
		codes: map[string]*code{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-authorization-server/tenant", func(w http.ResponseWriter, _ *http.Request) {
		write(w, http.StatusOK, map[string]any{"issuer": s.URL + "/tenant", "token_endpoint": s.URL + "/tenant/token", "response_types_supported": []string{}})
	})
	mux.Handle("/tenant/", s.At("/tenant"))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// At is what people and clients ask, below that path: for a provider that has it beside its API.
func (s *Server) At(path string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+path+"/token", s.token)
	mux.HandleFunc("GET "+path+"/authorize", s.authorize)
	mux.HandleFunc("POST "+path+"/revoke", s.revoke)
	return mux
}

// Issuer is the server's name, TokenURL its token endpoint, AuthorizeURL its page for people, RevokeURL where tokens are revoked.
func (s *Server) Issuer() string       { return s.URL + "/tenant" }
func (s *Server) TokenURL() string     { return s.URL + "/tenant/token" }
func (s *Server) AuthorizeURL() string { return s.URL + "/tenant/authorize" }
func (s *Server) RevokeURL() string    { return s.URL + "/tenant/revoke" }

// Grant gives a person's refresh token.
func (s *Server) Grant() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := &grant{person: "somebody", scopes: s.Scopes, refresh: rand.Text()}
	s.grants = append(s.grants, g)
	return g.refresh
}

// Given is how many tokens were given.
func (s *Server) Given() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.given
}

// Asked is how often clients have asked for anything.
func (s *Server) Asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// Expire ends the access tokens that were given; their clients are not told.
func (s *Server) Expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.access)
}

func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	if s.Slow != nil {
		s.Slow()
	}
	if !s.form(w, r) {
		return
	}
	for scope := range strings.FieldsSeq(r.PostForm.Get("scope")) {
		if !slices.Contains(s.Scopes, scope) {
			refuse(w, http.StatusBadRequest, "invalid_scope", "")
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	answer := map[string]any{"token_type": "Bearer"}
	var of *grant
	switch r.PostForm.Get("grant_type") {
	case "authorization_code":
		if of = s.redeem(r.PostForm); of == nil {
			refuse(w, http.StatusBadRequest, "invalid_grant", "the code "+r.PostForm.Get("code")+" is not good")
			return
		}
		answer["scope"] = strings.Join(of.scopes, " ")
		if !s.NoRefresh {
			of.refresh = rand.Text()
			answer["refresh_token"] = of.refresh
		}
	case "client_credentials":
		if s.ClientSecret == "" {
			refuse(w, http.StatusBadRequest, "unauthorized_client", "")
			return
		}
	case "refresh_token":
		asked := r.PostForm.Get("refresh_token")
		if of = s.refreshing(asked); of == nil {
			refuse(w, http.StatusBadRequest, "invalid_grant", "the token "+asked+" is not good")
			return
		}
		if !s.Stays {
			of.old = append(of.old, of.refresh)
			of.refresh = rand.Text()
			answer["refresh_token"] = of.refresh
		}
	default:
		refuse(w, http.StatusBadRequest, "unsupported_grant_type", "")
		return
	}
	lifetime := s.Lifetime
	if lifetime == 0 {
		lifetime = time.Hour
	}
	token := rand.Text()
	s.access[token] = access{time.Now().Add(lifetime), of}
	s.given++
	answer["access_token"], answer["expires_in"] = token, int(lifetime.Seconds())
	if s.Gives != nil {
		s.Gives()
	}
	w.Header().Set("Cache-Control", "no-store")
	write(w, http.StatusOK, answer)
}

// form reads what a client sends, and says whether it is the client.
func (s *Server) form(w http.ResponseWriter, r *http.Request) bool {
	s.mu.Lock()
	s.asked++
	down := s.down
	s.mu.Unlock()
	if down != 0 {
		w.WriteHeader(down)
		return false
	}
	if r.Header.Get("Content-Type") != "application/x-www-form-urlencoded" || r.ParseForm() != nil || r.URL.RawQuery != "" {
		refuse(w, http.StatusBadRequest, "invalid_request", "")
		return false
	}
	for _, values := range r.PostForm {
		if len(values) != 1 { // §3.2: parameters must not come twice
			refuse(w, http.StatusBadRequest, "invalid_request", "")
			return false
		}
	}
	if !s.client(r) {
		w.Header().Set("WWW-Authenticate", "Basic")
		refuse(w, http.StatusUnauthorized, "invalid_client", "who are you, "+r.PostForm.Get("client_id")+"?")
		return false
	}
	return true
}

// client authenticates the client (§2.3.1): by one means only.
func (s *Server) client(r *http.Request) bool {
	id, secret, basic := r.BasicAuth()
	if basic {
		id, _ = url.QueryUnescape(id)
		secret, _ = url.QueryUnescape(secret)
		return !s.PostOnly && !r.PostForm.Has("client_secret") && id == s.ClientID && s.ClientSecret != "" && secret == s.ClientSecret
	}
	return r.PostForm.Get("client_id") == s.ClientID && r.PostForm.Get("client_secret") == s.ClientSecret
}

// Protect lets requests with a good token through to a resource at path, and says to others how to get one.
func (s *Server) Protect(path string, resource http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-protected-resource"+path, func(w http.ResponseWriter, r *http.Request) {
		write(w, http.StatusOK, map[string]any{"resource": "http://" + r.Host + path, "authorization_servers": []string{s.Issuer()}})
	})
	mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		if _, good := s.Whose(r); !good {
			w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token", resource_metadata="http://`+r.Host+`/.well-known/oauth-protected-resource`+path+`"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		resource.ServeHTTP(w, r)
	})
	return mux
}

func refuse(w http.ResponseWriter, status int, code, description string) {
	write(w, status, map[string]any{"error": code, "error_description": description})
}

func write(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
