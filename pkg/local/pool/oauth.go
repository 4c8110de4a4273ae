package pool

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// oauthError is an error of the token endpoint (RFC 6749 §5.2).
type oauthError struct {
	status int
	Code   string `json:"error"`
	Text   string `json:"error_description,omitempty"`
}

func (e oauthError) Error() string { return e.Code + ": " + e.Text }

func refuse(code, format string, args ...any) error {
	return oauthError{http.StatusBadRequest, code, fmt.Sprintf(format, args...)}
}

type tokenAnswer struct {
	ID      string `json:"id_token,omitempty"`
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token,omitempty"`
	Expires int    `json:"expires_in"` // seconds
	Type    string `json:"token_type"`
}

// token serves POST /oauth2/token.
func (p *Pool) token(w http.ResponseWriter, r *http.Request) {
	form, err := p.clientForm(w, r)
	if err != nil {
		p.oauthFailed(w, r, err)
		return
	}
	var t tokens
	var x session
	switch kind := one(form, "grant_type"); kind {
	case "authorization_code":
		t, x, err = p.exchange(r.Context(), one(form, "code"), one(form, "redirect_uri"), one(form, "code_verifier"))
	case "refresh_token":
		if one(form, "refresh_token") == "" {
			err = refuse("invalid_request", "refresh_token is missing")
		} else {
			t, x, err = p.refresh(r.Context(), one(form, "refresh_token"))
		}
	case "":
		err = refuse("invalid_request", "grant_type is missing")
	default:
		err = refuse("unsupported_grant_type", "the grant types are authorization_code and refresh_token")
	}
	if err != nil {
		p.oauthFailed(w, r, err)
		return
	}
	if x.Hosted && !slices.Contains(strings.Fields(x.Scope), "openid") { // the wire API gives an ID token without the scope
		t.ID = ""
	}
	noStore(w)
	writeJSON(w, http.StatusOK, tokenAnswer{t.ID, t.Access, t.Refresh, int(tokenLife.Seconds()), "Bearer"})
}

// exchange turns an authorization code into tokens.
func (p *Pool) exchange(ctx context.Context, code, redirectURI, verifier string) (tokens, session, error) {
	if code == "" || redirectURI == "" || verifier == "" {
		return tokens{}, session{}, refuse("invalid_request", "code, redirect_uri and code_verifier are required")
	}
	g, ok, replayed := p.codes.take(code, redirectURI, verifier)
	if replayed != "" {
		if err := p.sessions.end(func(x session) bool { return x.Origin == replayed }); err != nil {
			return tokens{}, session{}, err
		}
	}
	if !ok {
		return tokens{}, session{}, refuse("invalid_grant", "the code is unknown, used or expired, or was issued for another redirect_uri or code_verifier")
	}
	u, ok := p.find(g.sub)
	if !ok || u.Disabled {
		return tokens{}, session{}, refuse("invalid_grant", "the user is gone or disabled")
	}
	t, x, err := p.signIn(ctx, u, sourceHosted, g.scope, g.nonce, g.authTime)
	if err == nil {
		p.codes.became(code, x.Origin)
	}
	return t, x, err
}

// revoke serves POST /oauth2/revoke (RFC 7009).
func (p *Pool) revoke(w http.ResponseWriter, r *http.Request) {
	form, err := p.clientForm(w, r)
	switch token := one(form, "token"); {
	case err != nil:
	case token == "":
		err = refuse("invalid_request", "token is missing")
	case isJWT(token):
		err = refuse("unsupported_token_type", "only refresh tokens can be revoked")
	default:
		err = p.endSession(token)
	}
	if err != nil {
		p.oauthFailed(w, r, err)
		return
	}
	noStore(w)
	w.WriteHeader(http.StatusOK)
}

// clientForm reads a form and checks the client, which has no secret: its id comes as client_id, or as the user of basic
// authorization with an empty password.
func (p *Pool) clientForm(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	if err := r.ParseForm(); err != nil {
		return nil, refuse("invalid_request", "the form could not be read")
	}
	for name, values := range r.PostForm {
		if len(values) > 1 {
			return nil, refuse("invalid_request", "parameter %.40q is repeated", name)
		}
	}
	id := one(r.PostForm, "client_id")
	if user, secret, basic := r.BasicAuth(); basic {
		if user != p.clientID || secret != "" || (id != "" && id != user) {
			return nil, oauthError{http.StatusUnauthorized, "invalid_client", "the client is unknown, or has no secret"}
		}
		return r.PostForm, nil
	}
	if id == "" {
		return nil, refuse("invalid_request", "client_id is missing")
	}
	if id != p.clientID {
		return nil, refuse("invalid_client", "the client is unknown")
	}
	return r.PostForm, nil
}

// userInfo serves /oauth2/userInfo: the user of the access token. email_verified is text here, as Cognito's.
func (p *Pool) userInfo(w http.ResponseWriter, r *http.Request) {
	noStore(w)
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	b, err := p.readAccess(strings.TrimSpace(token))
	if err != nil || !strings.EqualFold(scheme, "Bearer") {
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
		writeJSON(w, http.StatusUnauthorized, oauthError{Code: "invalid_token", Text: "Access token is expired, revoked or not one of this pool"})
		return
	}
	if !slices.Contains(b.scopes, "openid") {
		w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="openid"`)
		writeJSON(w, http.StatusForbidden, oauthError{Code: "insufficient_scope", Text: "The scope openid is needed"})
		return
	}
	writeJSON(w, http.StatusOK, map[string]string{"sub": b.user.Sub, "username": b.user.Sub, "email": b.user.Email, "email_verified": fmt.Sprint(b.user.Verified)})
}

func (p *Pool) oauthFailed(w http.ResponseWriter, r *http.Request, err error) {
	noStore(w)
	var o oauthError
	var e wireError
	switch {
	case errors.As(err, &o):
	case errors.As(err, &e):
		o = oauthError{http.StatusBadRequest, "invalid_grant", e.message}
	default:
		p.config.Log.ErrorContext(r.Context(), "identity pool", "error", err)
		o = oauthError{http.StatusInternalServerError, "server_error", "Something went wrong"}
	}
	if o.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Basic realm="identity pool"`)
	}
	writeJSON(w, o.status, o)
}

func noStore(w http.ResponseWriter) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Pragma", "no-cache")
}
