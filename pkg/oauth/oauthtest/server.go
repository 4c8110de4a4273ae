// Package oauthtest is an authorization server for tests, as strict as RFC 6749 allows: client credentials (§4.4), refresh tokens that are used once (§6), RFC
// 8414's metadata, and a guard for resources that describes them (RFC 9728).
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

	mu      sync.Mutex
	access  map[string]time.Time // tokens and when they end
	refresh string               // the one that is good now
	old     []string             // those that were good
	given   int
	revoked bool
}

// New starts a server with the client "platform" and its secret; it ends with the test.
func New(t testing.TB) *Server {
	s := &Server{ClientID: "platform", ClientSecret: "cl:ent s€cret", Scopes: []string{"read", "write"}, access: map[string]time.Time{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-authorization-server/tenant", func(w http.ResponseWriter, _ *http.Request) {
		write(w, http.StatusOK, map[string]any{"issuer": s.URL + "/tenant", "token_endpoint": s.URL + "/tenant/token", "response_types_supported": []string{}})
	})
	mux.HandleFunc("POST /tenant/token", s.token)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// Issuer is the server's name, TokenURL its token endpoint.
func (s *Server) Issuer() string   { return s.URL + "/tenant" }
func (s *Server) TokenURL() string { return s.URL + "/tenant/token" }

// Grant gives a person's refresh token.
func (s *Server) Grant() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refresh = rand.Text()
	return s.refresh
}

// Given is how many tokens were given.
func (s *Server) Given() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.given
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
	if r.Header.Get("Content-Type") != "application/x-www-form-urlencoded" || r.ParseForm() != nil || r.URL.RawQuery != "" {
		refuse(w, http.StatusBadRequest, "invalid_request", "")
		return
	}
	for _, values := range r.PostForm {
		if len(values) != 1 { // §3.2: parameters must not come twice
			refuse(w, http.StatusBadRequest, "invalid_request", "")
			return
		}
	}
	if !s.client(r) {
		w.Header().Set("WWW-Authenticate", "Basic")
		refuse(w, http.StatusUnauthorized, "invalid_client", "who are you, "+r.PostForm.Get("client_id")+"?")
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
	switch r.PostForm.Get("grant_type") {
	case "client_credentials":
		if s.ClientSecret == "" {
			refuse(w, http.StatusBadRequest, "unauthorized_client", "")
			return
		}
	case "refresh_token":
		asked := r.PostForm.Get("refresh_token")
		if slices.Contains(s.old, asked) { // used twice: whoever has it may have stolen it (RFC 9700 §4.14.2)
			s.revoked = true
		}
		if s.revoked || asked == "" || asked != s.refresh {
			refuse(w, http.StatusBadRequest, "invalid_grant", "the token "+asked+" is not good")
			return
		}
		s.old = append(s.old, s.refresh)
		s.refresh = rand.Text()
		answer["refresh_token"] = s.refresh
	default:
		refuse(w, http.StatusBadRequest, "unsupported_grant_type", "")
		return
	}
	lifetime := s.Lifetime
	if lifetime == 0 {
		lifetime = time.Hour
	}
	access := rand.Text()
	s.access[access] = time.Now().Add(lifetime)
	s.given++
	answer["access_token"], answer["expires_in"] = access, int(lifetime.Seconds())
	w.Header().Set("Cache-Control", "no-store")
	write(w, http.StatusOK, answer)
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
		access, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		s.mu.Lock()
		ends, known := s.access[access]
		s.mu.Unlock()
		if !known || time.Now().After(ends) {
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
