// Package web is local mode's own page: sign in, talk to the agent, see the reply stream and the turn's record, connect to task trackers, find the URLs.
//
// Invariants: the page uses nothing but the platform's public API and /local/outputs.json; it loads nothing from elsewhere and runs no
// inline script or style; what people and models write is shown as text and never parsed as HTML (Trusted Types hold this in browsers
// that have them); what a task tracker sends the browser back with is taken out of the address at once, and is in memory only.
package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
)

// Prefix is the path under which the page's own files are served.
const Prefix = "/local/web/"

const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self' ws://127.0.0.1:* ws://localhost:*; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

//go:embed static
var static embed.FS

type file struct {
	kind, tag string // Content-Type, ETag
	body      []byte
}

// Handler serves the page at GET / and its files under GET /local/web/. Everything else is 404.
func Handler() http.Handler {
	files := load()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, below := strings.CutPrefix(r.URL.Path, Prefix)
		if r.URL.Path == "/" {
			name, below = "page.html", true
		}
		f, ok := files[name]
		if !below || !ok {
			http.NotFound(w, r)
			return
		}
		h := w.Header()
		h.Set("Content-Type", f.kind)
		h.Set("Content-Security-Policy", policy)
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-cache") // a browser asks each time, and is told by the tag that it has it
		h.Set("ETag", f.tag)
		if r.Header.Get("If-None-Match") == f.tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = w.Write(f.body) // a browser that is gone has no use for an error
	})
}

// load reads the embedded files, by name.
func load() map[string]file {
	entries, err := fs.ReadDir(static, "static")
	if err != nil {
		panic(err) // embedded: a build without it is broken
	}
	files := make(map[string]file, len(entries))
	for _, e := range entries {
		body, err := static.ReadFile("static/" + e.Name())
		if err != nil {
			panic(err)
		}
		sum := sha256.Sum256(body)
		files[e.Name()] = file{kind: kind(e.Name()), tag: `"` + hex.EncodeToString(sum[:12]) + `"`, body: body}
	}
	return files
}

// kind is a file's Content-Type; the machine's own table may differ, so the few that matter are named.
func kind(name string) string {
	switch ext := path.Ext(name); ext {
	case ".html":
		return "text/html; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	default:
		return mime.TypeByExtension(ext)
	}
}
