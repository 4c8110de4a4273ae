package pool

import (
	"crypto/hmac"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"errors"
	"html/template"
	"net/http"
	"net/url"
)

//go:embed login.html
var loginHTML string

var loginPage = template.Must(template.New("login").Parse(loginHTML))

// page is what login.html shows: a form when Token is there, and a problem if any.
type page struct{ Title, Problem, Token, Username, Nonce string }

const formCookie = "XSRF-TOKEN"

// showLogin serves GET /login.
func (p *Pool) showLogin(w http.ResponseWriter, r *http.Request) {
	ask, wrong := p.readAuthorize(r.URL.RawQuery)
	if wrong != nil {
		wrong.answer(w, r)
		return
	}
	p.showForm(w, r, http.StatusOK, ask, ask.hint, "")
}

// login serves POST /login: the form. It is taken only from this pool's own page, in the browser that was shown it, for the
// authorize request that it was shown for.
func (p *Pool) login(w http.ResponseWriter, r *http.Request) {
	ask, wrong := p.readAuthorize(r.URL.RawQuery)
	if wrong != nil {
		wrong.answer(w, r)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	if err := r.ParseForm(); err != nil {
		p.showForm(w, r, http.StatusBadRequest, ask, "", "The form could not be read. Please try again.")
		return
	}
	username, password := r.PostForm.Get("username"), r.PostForm.Get("password")
	cookie, err := r.Cookie(formCookie)
	if http.NewCrossOriginProtection().Check(r) != nil || err != nil ||
		!hmac.Equal([]byte(r.PostForm.Get("_csrf")), []byte(p.formToken(cookie.Value, r.URL.RawQuery))) {
		p.showForm(w, r, http.StatusForbidden, ask, username, "The form has expired. Please try again.")
		return
	}
	if username == "" || password == "" {
		p.showForm(w, r, http.StatusBadRequest, ask, username, "Enter your e-mail address and your password.")
		return
	}
	u, err := p.authenticate(withOrigin(r), username, password)
	if err != nil {
		var e wireError
		errors.As(err, &e)
		p.showForm(w, r, http.StatusForbidden, ask, username, e.message)
		return
	}
	code := p.codes.issue(grant{asked: ask, sub: u.Sub, authTime: p.config.Clock().Unix()})
	redirect(w, r, ask.redirectURI, url.Values{"code": {code}, "state": {ask.state}})
}

// formToken binds a form to the browser (by its cookie) and to the authorize request.
func (p *Pool) formToken(cookie, rawQuery string) string {
	mac := hmac.New(sha256.New, p.formKey[:])
	mac.Write([]byte(cookie + "\n" + rawQuery))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func (p *Pool) showForm(w http.ResponseWriter, r *http.Request, status int, ask asked, username, problem string) {
	cookie, err := r.Cookie(formCookie)
	if err != nil || len(cookie.Value) != 32 {
		cookie = &http.Cookie{Name: formCookie, Value: base64.RawURLEncoding.EncodeToString(randomBytes(24)), Path: "/login",
			HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteLaxMode}
		http.SetCookie(w, cookie)
	}
	showPage(w, status, ask.redirectURI, page{Title: "Sign in", Problem: problem, Username: username, Token: p.formToken(cookie.Value, r.URL.RawQuery)})
}

// showPage writes the page; redirectURI is where its form may lead (browsers hold form-action against redirects, too).
func showPage(w http.ResponseWriter, status int, redirectURI string, v page) {
	v.Nonce = base64.RawURLEncoding.EncodeToString(randomBytes(16))
	form := "'self'"
	if u, err := url.Parse(redirectURI); err == nil && u.Host != "" {
		form += " " + u.Scheme + "://" + u.Host
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'nonce-"+v.Nonce+"'; form-action "+form+"; frame-ancestors 'none'; base-uri 'none'")
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // no-referrer would make browsers send `Origin: null` with the form
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = loginPage.Execute(w, v) // the browser has gone if this fails
}
