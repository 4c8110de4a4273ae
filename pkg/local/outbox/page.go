package outbox

import (
	"bytes"
	_ "embed"
	"errors"
	"html/template"
	"io/fs"
	"log/slog"
	"net/http"
)

// Path is where Handler's pages are.
const Path = "/local/outbox"

// policy allows the style sheet of local mode's own page, and no script.
const policy = "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

//go:embed page.html
var pageText string

var page = template.Must(template.New("outbox").Parse(pageText))

const perPage = 50

// Handler serves the list at GET /local/outbox (?before=<id> for older ones) and each entry's text at GET /local/outbox/<id>.
func (o *Outbox) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Path, o.serveList)
	mux.HandleFunc("GET "+Path+"/{id}", o.serveText)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		mux.ServeHTTP(w, r)
	})
}

func (o *Outbox) serveList(w http.ResponseWriter, r *http.Request) {
	before := r.URL.Query().Get("before")
	if before != "" && !file.MatchString(before+".eml") {
		http.Error(w, "before is not the id of an entry", http.StatusBadRequest)
		return
	}
	entries, more, err := o.List(before, perPage)
	if err != nil {
		fail(w, err)
		return
	}
	older := ""
	if more {
		older = entries[len(entries)-1].ID
	}
	var b bytes.Buffer
	if err := page.Execute(&b, struct {
		Path, Before string
		Entries      []Entry
		Older        string // the id before which older ones are
	}{Path, before, entries, older}); err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(b.Bytes()) // a browser that is gone has no use for an error
}

func (o *Outbox) serveText(w http.ResponseWriter, r *http.Request) {
	content, err := o.Read(r.PathValue("id"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		http.Error(w, "there is no such entry; the oldest ones go", http.StatusNotFound)
	case err != nil:
		fail(w, err)
	default:
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write(content)
	}
}

func fail(w http.ResponseWriter, err error) {
	slog.Error("the outbox cannot be shown", "error", err)
	http.Error(w, "the outbox cannot be shown; the platform's log says why", http.StatusInternalServerError)
}
