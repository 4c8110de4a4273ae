package pool

import (
	"net/http"
	"slices"
)

type route struct {
	pattern string // of http.ServeMux
	serve   http.HandlerFunc
	browser bool // pages call it from other origins: answered with CORS headers, preflight included
}

func (p *Pool) routes() []route {
	return []route{
		{"POST /{$}", p.wire, true},
		{"GET /" + p.id + "/.well-known/jwks.json", p.jwks, true},
		{"GET /" + p.id + "/.well-known/openid-configuration", p.discovery, true},
		{"GET /oauth2/authorize", p.authorize, false},
		{"GET /login", p.showLogin, false},
		{"POST /login", p.login, false},
		{"POST /oauth2/token", p.token, true},
		{"GET /oauth2/userInfo", p.userInfo, true},
		{"POST /oauth2/userInfo", p.userInfo, true},
		{"POST /oauth2/revoke", p.revoke, true},
		{"GET /logout", p.logout, false},
	}
}

// Patterns are the http.ServeMux patterns that Handler answers, for a caller that mounts it beside other things.
func (p *Pool) Patterns() []string {
	var list []string
	for _, r := range p.routes() {
		list = append(list, r.pattern)
		if _, preflight, ok := r.cors(); ok && !slices.Contains(list, preflight) {
			list = append(list, preflight)
		}
	}
	return list
}

// Handler serves the wire API, the key set, discovery and the hosted UI. Everything else is 404.
func (p *Pool) Handler() http.Handler {
	mux := http.NewServeMux()
	allowed := map[string][]string{}
	for _, r := range p.routes() {
		method, preflight, ok := r.cors()
		if !ok {
			mux.Handle(r.pattern, r.serve)
			continue
		}
		mux.Handle(r.pattern, open(r.serve))
		allowed[preflight] = append(allowed[preflight], method)
	}
	for pattern, methods := range allowed {
		mux.Handle(pattern, preflight(methods))
	}
	return mux
}

func (p *Pool) discovery(w http.ResponseWriter, _ *http.Request) {
	at := func(path string) string { return p.config.BaseURL + path }
	w.Header().Set("Cache-Control", "public, max-age=60")
	writeJSON(w, http.StatusOK, map[string]any{
		"issuer":                                p.Issuer(),
		"jwks_uri":                              p.JWKSURL(),
		"authorization_endpoint":                at("/oauth2/authorize"),
		"token_endpoint":                        at("/oauth2/token"),
		"userinfo_endpoint":                     at("/oauth2/userInfo"),
		"revocation_endpoint":                   at("/oauth2/revoke"),
		"end_session_endpoint":                  at("/logout"),
		"response_types_supported":              []string{"code"},
		"grant_types_supported":                 []string{"authorization_code", "refresh_token"},
		"code_challenge_methods_supported":      []string{"S256"},
		"token_endpoint_auth_methods_supported": []string{"none"},
		"scopes_supported":                      scopes,
		"subject_types_supported":               []string{"public"},
		"id_token_signing_alg_values_supported": []string{"RS256"},
	})
}
