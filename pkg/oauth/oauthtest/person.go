package oauthtest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// code is what a person was sent back with.
type code struct {
	grant       *grant
	challenge   string
	redirectURI string
	used        bool
}

var (
	challenges = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)       // of S256: RFC 7636 §4.2
	verifiers  = regexp.MustCompile(`^[A-Za-z0-9._~-]{43,128}$`) // §4.1
)

// Consent is what a person's browser does with an authorization address: it opens it, the person allows what is asked for, and the browser is sent back. It
// gives the state and the code that it is sent back with.
func (s *Server) Consent(t testing.TB, address, person string) (state, code string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Person", person)
	response, err := http.DefaultTransport.RoundTrip(r) // which follows no redirect
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	back, err := response.Location()
	if err != nil || response.StatusCode != http.StatusFound {
		why, _ := io.ReadAll(response.Body)
		t.Fatalf("the authorization server does not take the address: %s", why)
	}
	return back.Query().Get("state"), back.Query().Get("code")
}

// authorize is the page for people. A request that is not quite right gets no redirect (RFC 6749 §4.1.2.1).
func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	back, err := url.Parse(q.Get("redirect_uri"))
	wrong := err != nil || q.Get("client_id") != s.ClientID || q.Get("response_type") != "code" || !slices.Contains(s.RedirectURIs, q.Get("redirect_uri")) || q.Get("state") == "" ||
		q.Get("code_challenge_method") != "S256" || !challenges.MatchString(q.Get("code_challenge"))
	scopes := strings.FieldsFunc(q.Get("scope"), func(r rune) bool { return r == ' ' || r == ',' })
	for _, scope := range scopes {
		wrong = wrong || !slices.Contains(s.Scopes, scope)
	}
	for _, values := range q {
		wrong = wrong || len(values) != 1
	}
	if wrong {
		http.Error(w, fmt.Sprint("this is not how one asks here: ", q), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	g, name := &grant{person: r.Header.Get("X-Person"), scopes: scopes}, rand.Text()
	s.grants = append(s.grants, g)
	s.codes[name] = &code{grant: g, challenge: q.Get("code_challenge"), redirectURI: q.Get("redirect_uri")}
	answer := back.Query()
	answer.Set("code", name)
	answer.Set("state", q.Get("state"))
	back.RawQuery = answer.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

// redeem is the grant of a code that is good: once, with its verifier and its address. One that is used twice takes back what it gave (RFC 6749 §4.1.2).
func (s *Server) redeem(form url.Values) *grant {
	c := s.codes[form.Get("code")]
	if c == nil {
		return nil
	}
	if c.used {
		s.end(c.grant)
		return nil
	}
	hash := sha256.Sum256([]byte(form.Get("code_verifier")))
	if form.Get("redirect_uri") != c.redirectURI || !verifiers.MatchString(form.Get("code_verifier")) || base64.RawURLEncoding.EncodeToString(hash[:]) != c.challenge {
		return nil
	}
	c.used = true
	return c.grant
}

// refreshing is the grant of a refresh token that is good. One that was replaced takes everything back: whoever has it may have stolen it (RFC 9700 §4.14.2).
func (s *Server) refreshing(token string) *grant {
	for _, g := range s.grants {
		if slices.Contains(g.old, token) {
			s.end(g)
		}
		if token != "" && g.refresh == token && !g.revoked {
			return g
		}
	}
	return nil
}

// end takes a grant back, with its tokens.
func (s *Server) end(g *grant) {
	g.revoked = true
	for token, a := range s.access {
		if a.grant == g {
			delete(s.access, token)
		}
	}
}

func (s *Server) revoke(w http.ResponseWriter, r *http.Request) {
	if !s.form(w, r) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	token := r.PostForm.Get("token")
	if a, ok := s.access[token]; ok && a.grant != nil {
		s.end(a.grant)
	}
	for _, g := range s.grants {
		if token != "" && g.refresh == token {
			s.end(g)
		}
	}
}

// TakeBack is what people do who want the client to have access no more.
func (s *Server) TakeBack() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.grants {
		s.end(g)
	}
}

// Allowed is how many people allow access now, by a refresh token.
func (s *Server) Allowed() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.grants {
		if g.refresh != "" && !g.revoked {
			n++
		}
	}
	return n
}

// Down has the token and revocation endpoints answer with this status from now on; 0: as they should.
func (s *Server) Down(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = status
}

// Whose is the person whose good token comes with a request.
func (s *Server) Whose(r *http.Request) (person string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	a, ok := s.access[token]
	if !ok || time.Now().After(a.ends) {
		return "", false
	}
	if a.grant != nil {
		person = a.grant.person
	}
	return person, true
}
