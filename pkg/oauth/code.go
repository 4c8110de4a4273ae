package oauth

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// Authorization is what a person is sent to an authorization server with, to be asked there, and to come back with a code.
type Authorization struct {
	URL         string // of the server's page
	ClientID    string
	RedirectURI string // where the person comes back to
	Scopes      []string
	Join        string // between scopes; empty: a space, as §3.3 has it
	State       string // that comes back with the code
	Verifier    string // that Grant.Verifier will be: only its hash goes along (RFC 7636 §4.2)
	Extra       url.Values
}

// Address is where the person is sent.
func (a Authorization) Address() (string, error) {
	u, err := url.Parse(a.URL)
	if err != nil || u.Host == "" || u.Fragment != "" {
		return "", &Error{Reason: "the address of the authorization server cannot be understood"}
	}
	q := u.Query()
	maps.Copy(q, a.Extra)
	challenge := sha256.Sum256([]byte(a.Verifier))
	for name, value := range map[string]string{"response_type": "code", "client_id": a.ClientID, "redirect_uri": a.RedirectURI, "state": a.State,
		"code_challenge": base64.RawURLEncoding.EncodeToString(challenge[:]), "code_challenge_method": "S256"} {
		q.Set(name, value)
	}
	join := a.Join
	if join == "" {
		join = " "
	}
	if len(a.Scopes) > 0 {
		q.Set("scope", strings.Join(a.Scopes, join))
	}
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// Revoke takes a token back (RFC 7009). What is revoked already is no error.
func (g Grant) Revoke(ctx context.Context, c *http.Client, at, token string) error {
	ctx, cancel := context.WithTimeout(ctx, timeLimit)
	defer cancel()
	status, _, err := g.post(ctx, c, at, url.Values{"token": {token}}, g.InBody)
	if err == nil && (status < 200 || status > 299) {
		err = &Error{Reason: fmt.Sprintf("the authorization server answers with HTTP status %d", status), Status: status}
	}
	return err
}

var scope = regexp.MustCompile(`^[\x21\x23-\x5b\x5d-\x7e]{1,200}$`) // §3.3

const maxScopes = 100

// scopes are those of an answer: a text with spaces as §5.1 has it, with commas, or a list, as some say it. What is no scope is left out.
func scopes(said json.RawMessage) (given []string) {
	var list []string
	var text string
	if json.Unmarshal(said, &text) == nil {
		list = strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' })
	} else if json.Unmarshal(said, &list) != nil {
		return nil
	}
	for _, s := range list {
		if scope.MatchString(s) && len(given) < maxScopes {
			given = append(given, s)
		}
	}
	return given
}
