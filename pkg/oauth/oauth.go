// Package oauth gets access tokens from authorization servers: for the platform itself, where no person is asked, by client credentials (RFC 6749 §4.4) and by
// a refresh token that a person was given (§6); for a person who is asked, by an authorization code (§4.1), always with PKCE (RFC 7636). It finds the
// authorization server of a resource (RFC 9728, RFC 8414), and revokes tokens (RFC 7009).
//
// It keeps nothing: who asks for tokens keeps them, and holds the lock that a rotated refresh token needs. Errors are *Error, with a reason that the tenant
// may read: no secret is in it. The client that is handed in is pkg/egress's.
package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/agentplatform/agentplatform/pkg/egress"
)

// Grant is what a token is asked for with.
type Grant struct {
	TokenURL     string
	ClientID     string
	ClientSecret string   // empty: a public client, with a refresh token only
	InBody       bool     // the client secret goes in the body at once: where Basic is known not to be taken
	Code         string   // that a person brought from the server; empty: none did
	Verifier     string   // of the code
	RedirectURI  string   // that the code came to
	RefreshToken string   // empty, as the code: client credentials
	Scopes       []string // empty: what the server gives
	Resource     string   // whom the token is for (RFC 8707); empty: not said
}

// Token is an answer.
type Token struct {
	Access  string
	Refresh string    // that replaces the one asked with; empty: that one stays
	Expires time.Time // zero: not said
	Scopes  []string  // that were given; nil: not said, which means those that were asked for
}

// Error is why there is no token.
type Error struct {
	Reason string
	Code   string // the server's own word (RFC 6749 §5.2); empty: it did not answer so
	Status int    // of HTTP; 0: there was no answer
}

func (e *Error) Error() string { return e.Reason }

// Over reports whether an error says that what was asked with is good no more: a person took the access back, or it has ended.
func Over(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == "invalid_grant"
}

// Unknown reports whether nobody knows if the server did what it was asked: no answer came, or one that its own failure made.
func Unknown(err error) bool {
	var e *Error
	return errors.As(err, &e) && !Over(err) && (e.Status >= 500 || e.Status == 0 && e.Code == "")
}

const (
	maxAnswer = 64 << 10 // bytes
	maxToken  = 4 << 10  // characters of one
	timeLimit = 10 * time.Second
)

// Token asks for a token. A client secret goes by HTTP Basic, as every server must take it (§2.3.1); one that does not is asked again with it in the body, unless
// with a code: one that comes twice may take back what it gave (§4.1.2).
func (g Grant) Token(ctx context.Context, c *http.Client) (Token, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*timeLimit)
	defer cancel()
	t, err := g.ask(ctx, c, g.InBody)
	var e *Error
	if g.ClientSecret != "" && !g.InBody && g.Code == "" && errors.As(err, &e) && e.Code == "invalid_client" {
		inBody, again := g.ask(ctx, c, true)
		if !errors.As(again, &e) || e.Code != "invalid_client" {
			return inBody, again
		}
	}
	return t, err
}

func (g Grant) ask(ctx context.Context, c *http.Client, inBody bool) (Token, error) {
	form := url.Values{"grant_type": {"client_credentials"}}
	switch {
	case g.Code != "":
		form = url.Values{"grant_type": {"authorization_code"}, "code": {g.Code}, "code_verifier": {g.Verifier}, "redirect_uri": {g.RedirectURI}}
	case g.RefreshToken != "":
		form = url.Values{"grant_type": {"refresh_token"}, "refresh_token": {g.RefreshToken}}
	}
	if len(g.Scopes) > 0 {
		form.Set("scope", strings.Join(g.Scopes, " "))
	}
	if g.Resource != "" {
		form.Set("resource", g.Resource)
	}
	status, body, err := g.post(ctx, c, g.TokenURL, form, inBody)
	if err != nil {
		return Token{}, err
	}
	if refused := g.refused(status, body); status != http.StatusOK || refused.Code != "" { // some refuse with status 200
		return Token{}, refused
	}
	return read(body)
}

// post sends a form with the client's name and secret.
func (g Grant) post(ctx context.Context, c *http.Client, to string, form url.Values, inBody bool) (int, []byte, error) {
	if g.ClientSecret == "" || inBody {
		form.Set("client_id", g.ClientID)
	}
	if g.ClientSecret != "" && inBody {
		form.Set("client_secret", g.ClientSecret)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to, strings.NewReader(form.Encode()))
	if err != nil {
		return 0, nil, &Error{Reason: "the URL of the authorization server cannot be understood"}
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", "application/json")
	if g.ClientSecret != "" && !inBody {
		r.SetBasicAuth(url.QueryEscape(g.ClientID), url.QueryEscape(g.ClientSecret)) // encoded first: §2.3.1
	}
	status, body, err := exchange(c, r)
	if err != nil {
		return 0, nil, explain(ctx, "the authorization server: ", err)
	}
	return status, body, nil
}

func exchange(c *http.Client, r *http.Request) (int, []byte, error) {
	response, err := c.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err == nil && len(body) > maxAnswer {
		err = egress.ErrTooLarge
	}
	return response.StatusCode, body, err
}

// explain says what went wrong on the way; the end of the caller's own time stays what it is.
func explain(ctx context.Context, where string, err error) error {
	if ended := ctx.Err(); errors.Is(ended, context.Canceled) {
		return ended
	}
	return &Error{Reason: where + egress.Explain(err)}
}

var (
	codes  = regexp.MustCompile(`^[a-z_]{1,60}$`)
	tokens = regexp.MustCompile(`^[\x21-\x7e]+$`)
)

// refused is an answer that is an error (§5.2). Its description is told unless it repeats what was sent.
func (g Grant) refused(status int, body []byte) *Error {
	var said struct {
		Code        string `json:"error"`
		Description string `json:"error_description"`
	}
	if json.Unmarshal(body, &said) != nil || !codes.MatchString(said.Code) {
		return &Error{Reason: fmt.Sprintf("the authorization server answers with HTTP status %d", status), Status: status}
	}
	e := &Error{Reason: "the authorization server refuses: " + said.Code, Code: said.Code, Status: status}
	for _, secret := range []string{g.ClientSecret, g.RefreshToken, g.Code, g.Verifier} {
		if secret != "" && strings.Contains(said.Description, secret) {
			return e
		}
	}
	if d := strings.Map(printable, said.Description); d != "" && len(d) <= 300 {
		e.Reason += ": " + d
	}
	return e
}

// printable keeps the characters that a description may have (§5.2).
func printable(r rune) rune {
	if r < ' ' || r > '~' {
		return -1
	}
	return r
}

// read is an answer that is a token (§5.1).
func read(body []byte) (Token, error) {
	var said struct {
		AccessToken  string          `json:"access_token"`
		TokenType    string          `json:"token_type"`
		ExpiresIn    json.RawMessage `json:"expires_in"`
		RefreshToken string          `json:"refresh_token"`
		Scope        json.RawMessage `json:"scope"`
	}
	if err := json.Unmarshal(body, &said); err != nil {
		return Token{}, &Error{Reason: "the authorization server does not answer with a token", Status: http.StatusOK}
	}
	switch {
	case !strings.EqualFold(said.TokenType, "bearer"):
		return Token{}, &Error{Reason: "the authorization server gives a token that is not a bearer's", Status: http.StatusOK}
	case !tokens.MatchString(said.AccessToken), said.RefreshToken != "" && !tokens.MatchString(said.RefreshToken):
		return Token{}, &Error{Reason: "the authorization server does not answer with a token", Status: http.StatusOK}
	case len(said.AccessToken) > maxToken || len(said.RefreshToken) > maxToken:
		return Token{}, &Error{Reason: fmt.Sprintf("the authorization server gives a token longer than %d characters", maxToken), Status: http.StatusOK}
	}
	t := Token{Access: said.AccessToken, Refresh: said.RefreshToken, Scopes: scopes(said.Scope)}
	if seconds, err := strconv.ParseFloat(strings.Trim(string(said.ExpiresIn), `"`), 64); err == nil && seconds > 0 { // some say it in quotes
		t.Expires = time.Now().Add(time.Duration(min(seconds, 10*365*24*3600) * float64(time.Second)))
	}
	return t, nil
}
