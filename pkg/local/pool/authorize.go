package pool

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// scopes that a client may ask for; asking for none is asking for all.
var scopes = []string{"openid", "email", "profile", adminScope}

const maxQuery = 8 << 10 // bytes of an authorize request's parameters

// asked is an authorize request that has been checked.
type asked struct{ redirectURI, state, scope, challenge, nonce, hint string }

// authorizeError is what is wrong with an authorize request. Without a redirectURI it is shown as a page: the address was not trusted.
type authorizeError struct{ redirectURI, state, code, text string }

var challenges = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`) // base64url of a SHA-256

// readAuthorize checks the parameters of /oauth2/authorize, which /login gets unchanged and checks again.
func (p *Pool) readAuthorize(rawQuery string) (asked, *authorizeError) {
	page := func(text string) (asked, *authorizeError) { return asked{}, &authorizeError{text: text} }
	q, err := url.ParseQuery(rawQuery)
	if err != nil || len(rawQuery) > maxQuery {
		return page("The request's parameters could not be read.")
	}
	if one(q, "client_id") != p.clientID {
		return page("The client_id is not a client of this pool.")
	}
	redirectURI := one(q, "redirect_uri")
	if !p.mayRedirect(redirectURI) {
		return page("The redirect_uri is not allowed for this client: use a loopback address such as http://127.0.0.1:1455/callback.")
	}
	state := one(q, "state")
	back := func(code, text string) (asked, *authorizeError) {
		return asked{}, &authorizeError{redirectURI, state, code, text}
	}
	for name, values := range q {
		if len(values) > 1 {
			return back("invalid_request", fmt.Sprintf("parameter %.40q is repeated", name))
		}
	}
	if kind := one(q, "response_type"); kind == "" {
		return back("invalid_request", "response_type is missing")
	} else if kind != "code" {
		return back("unsupported_response_type", "response_type must be code")
	}
	if one(q, "code_challenge_method") != "S256" || !challenges.MatchString(one(q, "code_challenge")) {
		return back("invalid_request", "PKCE is required: code_challenge with code_challenge_method S256")
	}
	scope := strings.Fields(one(q, "scope"))
	if len(scope) == 0 {
		scope = scopes
	}
	for _, s := range scope {
		if !slices.Contains(scopes, s) {
			return back("invalid_scope", "the scopes are "+strings.Join(scopes, " "))
		}
	}
	if one(q, "prompt") == "none" {
		return back("login_required", "the pool keeps nobody signed in")
	}
	return asked{redirectURI, state, strings.Join(scope, " "), one(q, "code_challenge"), one(q, "nonce"), one(q, "login_hint")}, nil
}

func one(q url.Values, name string) string {
	if len(q[name]) != 1 {
		return ""
	}
	return q[name][0]
}

// mayRedirect reports whether a browser may be sent there: http on 127.0.0.1 or localhost with any port and path (RFC 8252 §7.3), the
// pool's own base URL, or one that is configured.
func (p *Pool) mayRedirect(uri string) bool {
	if uri == "" {
		return false
	}
	if uri == p.config.BaseURL || uri == p.config.BaseURL+"/" || slices.Contains(p.config.RedirectURLs, uri) {
		return true
	}
	u, err := url.Parse(uri)
	return err == nil && u.Scheme == "http" && u.User == nil && u.Opaque == "" && !strings.Contains(uri, "#") && !strings.Contains(uri, `\`) &&
		(u.Hostname() == "127.0.0.1" || u.Hostname() == "localhost")
}

// authorize serves GET /oauth2/authorize.
func (p *Pool) authorize(w http.ResponseWriter, r *http.Request) {
	if _, wrong := p.readAuthorize(r.URL.RawQuery); wrong != nil {
		wrong.answer(w, r)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, "/login?"+r.URL.RawQuery, http.StatusFound)
}

func (e *authorizeError) answer(w http.ResponseWriter, r *http.Request) {
	if e.redirectURI == "" {
		showPage(w, http.StatusBadRequest, "", page{Title: "Sign-in request refused", Problem: e.text})
		return
	}
	redirect(w, r, e.redirectURI, url.Values{"error": {e.code}, "error_description": {e.text}, "state": {e.state}})
}

// redirect sends the browser back to the client, with these parameters beside those that its address has already.
func redirect(w http.ResponseWriter, r *http.Request, uri string, add url.Values) {
	if add.Get("state") == "" {
		add.Del("state")
	}
	joint := "?"
	if strings.Contains(uri, "?") {
		joint = "&"
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	http.Redirect(w, r, uri+joint+add.Encode(), http.StatusSeeOther)
}

// logout serves GET /logout: there is no sign-in cookie to end, so it only sends the browser on.
func (p *Pool) logout(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if one(q, "client_id") != p.clientID || !p.mayRedirect(one(q, "logout_uri")) {
		showPage(w, http.StatusBadRequest, "", page{Title: "Sign-out request refused", Problem: "The client_id or the logout_uri is not allowed."})
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, one(q, "logout_uri"), http.StatusFound)
}
