package web

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func get(t *testing.T, path string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, r)
	return w
}

// sources are the embedded files' texts by name.
func sources(t *testing.T) map[string]string {
	t.Helper()
	entries, err := fs.ReadDir(static, "static")
	require.NoError(t, err)
	all := map[string]string{}
	for _, e := range entries {
		body, err := static.ReadFile("static/" + e.Name())
		require.NoError(t, err)
		all[e.Name()] = string(body)
	}
	return all
}

func TestHeaders(t *testing.T) {
	kinds := map[string]string{"html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
	paths := []string{"/"}
	for name := range sources(t) {
		paths = append(paths, Prefix+name)
	}
	for _, path := range paths {
		w := get(t, path)
		require.Equal(t, http.StatusOK, w.Code, path)
		ext := "html"
		if i := strings.LastIndexByte(path, '.'); i >= 0 {
			ext = path[i+1:]
		}
		h := w.Header()
		require.Equal(t, kinds[ext], h.Get("Content-Type"), path)
		require.Equal(t, "nosniff", h.Get("X-Content-Type-Options"), path)
		require.Equal(t, "no-referrer", h.Get("Referrer-Policy"), path)
		require.Equal(t, "same-origin", h.Get("Cross-Origin-Opener-Policy"), path)
		require.Equal(t, policy, h.Get("Content-Security-Policy"), path)
	}
}

func TestPolicyForbidsInlineAndElsewhere(t *testing.T) {
	directives := map[string]string{}
	for d := range strings.SplitSeq(policy, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(d), " ")
		directives[name] = value
	}
	require.NotContains(t, policy, "unsafe")
	require.NotContains(t, policy, "data:")
	require.NotContains(t, policy, "http")
	for name, want := range map[string]string{"default-src": "'none'", "script-src": "'self'", "style-src": "'self'", "img-src": "'self'",
		"connect-src": "'self' ws://127.0.0.1:* ws://localhost:*", "base-uri": "'none'", "form-action": "'none'", "frame-ancestors": "'none'",
		"require-trusted-types-for": "'script'", "trusted-types": "'none'"} {
		require.Equal(t, want, directives[name], name)
	}
}

func TestOnlyItsOwnFilesAreServed(t *testing.T) {
	for _, path := range []string{Prefix, Prefix + "missing.js", Prefix + "../routes.go", Prefix + "static/page.js", "/page.js", "/index.html"} {
		require.Equal(t, http.StatusNotFound, get(t, path).Code, path)
	}
}

func TestABrowserThatHasAFileIsToldSo(t *testing.T) {
	first := get(t, Prefix+"page.js")
	tag := first.Header().Get("ETag")
	require.NotEmpty(t, tag)
	require.Equal(t, "no-cache", first.Header().Get("Cache-Control"))
	again := get(t, Prefix+"page.js", "If-None-Match", tag)
	require.Equal(t, http.StatusNotModified, again.Code)
	require.Zero(t, again.Body.Len())
}

// The page would break under its own policy with inline code, and leak or break offline with an address elsewhere.
func TestNothingInlineAndNothingFromElsewhere(t *testing.T) {
	for name, text := range sources(t) {
		rest := strings.ReplaceAll(text, "http://www.w3.org/2000/svg", "") // a name, not an address
		require.NotRegexp(t, `(?i)https?://|url\(|@import`, rest, name)
	}
	page := sources(t)["page.html"]
	require.NotRegexp(t, `(?i)<style|\sstyle=|\son\w+=|javascript:`, page)
	for _, script := range regexp.MustCompile(`(?is)<script[^>]*>(.*?)</script>`).FindAllStringSubmatch(page, -1) {
		require.Empty(t, script[1])
	}
	for _, address := range regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		path := address[1]
		if strings.HasPrefix(path, "#") || path == "/local/outputs.json" || path == "/local/outbox" { // the platform's
			continue
		}
		require.Equal(t, http.StatusOK, get(t, path).Code, path)
	}
}

func TestTextIsNeverParsedAsHTMLAndTokensEndWithTheTab(t *testing.T) {
	for name, text := range sources(t) {
		if strings.HasSuffix(name, ".js") {
			require.NotRegexp(t, `innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\(|new Function|localStorage|document\.cookie`, text, name)
		}
	}
}

// A code or a state of a task tracker is in memory only: what the tab keeps is the session, and nothing of it is logged.
func TestOnlyTheSessionIsKept(t *testing.T) {
	all := sources(t)
	require.Contains(t, all["session.js"], "sessionStorage.removeItem")
	for name, text := range all {
		if name != "session.js" {
			require.NotRegexp(t, `sessionStorage|indexedDB|caches\.`, text, name)
		}
		require.NotContains(t, text, "console.", name)
	}
}

// What the scripts import and look up exists.
func TestScriptsAndPageFitTogether(t *testing.T) {
	all := sources(t)
	page := all["page.html"]
	for name, text := range all {
		if !strings.HasSuffix(name, ".js") {
			continue
		}
		for _, m := range regexp.MustCompile(`from '\./([^']+)'`).FindAllStringSubmatch(text, -1) {
			require.Contains(t, all, m[1], name)
		}
		for _, m := range regexp.MustCompile(`\$\('([^']+)'\)`).FindAllStringSubmatch(text, -1) {
			require.Equal(t, 1, strings.Count(page, `id="`+m[1]+`"`), "%s looks up #%s", name, m[1])
		}
	}
	for _, m := range regexp.MustCompile(`(?:for|aria-labelledby|aria-describedby)="([^"]+)"`).FindAllStringSubmatch(page, -1) {
		require.Equal(t, 1, strings.Count(page, `id="`+m[1]+`"`), "a label refers to #%s", m[1])
	}
}
