package outbox

import (
	"encoding/json"
	"errors"
	"io/fs"
	"mime"
	netmail "net/mail"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Kind is what an entry is.
type Kind string

const (
	Mail Kind = "e-mail"
	Push Kind = "push"
)

// Entry is one mail or push, in short.
type Entry struct {
	ID      string
	Kind    Kind
	At      time.Time
	To      string // addresses, or the endpoint
	Subject string // or title
}

// MaxPage is how many entries a page has at most.
const MaxPage = 100

// List are at most limit entries, newest first: from the newest, or those before the id of the last page's last one. more says that there are older ones.
func (o *Outbox) List(before string, limit int) (entries []Entry, more bool, err error) {
	limit = max(1, min(limit, MaxPage))
	o.mu.Lock()
	names := slices.Clone(o.names)
	o.mu.Unlock()
	for _, name := range slices.Backward(names) {
		if before != "" && idOf(name) >= before {
			continue
		}
		if len(entries) == limit {
			return entries, true, nil
		}
		e, err := o.entry(name)
		if errors.Is(err, fs.ErrNotExist) { // the oldest may go meanwhile
			continue
		}
		if err != nil {
			return nil, false, err
		}
		entries = append(entries, e)
	}
	return entries, false, nil
}

// Read is the whole text of an entry; fs.ErrNotExist: there is none of that id.
func (o *Outbox) Read(id string) ([]byte, error) {
	for _, kind := range []string{".eml", ".json"} {
		if !file.MatchString(id + kind) {
			return nil, fs.ErrNotExist
		}
		content, err := os.ReadFile(filepath.Join(o.dir, id+kind))
		if !errors.Is(err, fs.ErrNotExist) {
			return content, err
		}
	}
	return nil, fs.ErrNotExist
}

// entry reads a file's beginning. What somebody has changed by hand is shown without what cannot be read.
func (o *Outbox) entry(name string) (Entry, error) {
	e := Entry{ID: idOf(name), Kind: Mail}
	e.At, _ = time.Parse(idForm, e.ID)
	f, err := os.Open(filepath.Join(o.dir, name))
	if err != nil {
		return e, err
	}
	defer f.Close()
	if strings.HasSuffix(name, ".json") {
		e.Kind = Push
		var p pushed
		if json.NewDecoder(f).Decode(&p) == nil {
			e.To, e.Subject = p.Endpoint, p.Title
		}
		return e, nil
	}
	if m, err := netmail.ReadMessage(f); err == nil {
		e.To, e.Subject = m.Header.Get("To"), decoded(m.Header.Get("Subject"))
	}
	return e, nil
}

func decoded(header string) string {
	if text, err := new(mime.WordDecoder).DecodeHeader(header); err == nil {
		return text
	}
	return header
}
