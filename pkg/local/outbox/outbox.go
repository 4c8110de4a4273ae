// Package outbox is where the e-mails and push notifications of one machine end: it is the mail.Carrier and the push.Carrier of local mode. Each is kept
// as one file, and shown by Handler.
//
// What holds:
//   - A file is there whole or not at all, also when the process dies: it is written beside, synced and renamed.
//   - A file's name is its id, the time of sending; ids only grow, also when the machine's clock goes back. A mail is <id>.eml, as it would have been
//     sent; a push is <id>.json.
//   - At most Config.Keep are kept: the oldest go.
//   - Devices are kept in devices/, one file each; the endpoint of a token is always the same.
//
// One process at a time uses a folder.
package outbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agentplatform/agentplatform/pkg/atomicfile"
	"github.com/agentplatform/agentplatform/pkg/mail"
)

// Config says where and how much is kept.
type Config struct {
	Dir  string // made if there is none. Required
	Keep int    // how many mails and pushes together; default 1000
}

// Outbox keeps what was sent. It is safe for concurrent use.
type Outbox struct {
	dir  string
	keep int

	mu    sync.Mutex
	names []string // of the files, oldest first
}

const (
	idForm  = "20060102T150405.000000Z" // UTC
	devices = "devices"
)

var file = regexp.MustCompile(`^(\d{8}T\d{6}\.\d{6}Z)\.(eml|json)$`)

// Open opens the folder, and removes what an earlier process had not finished writing.
func Open(c Config) (*Outbox, error) {
	if c.Keep == 0 {
		c.Keep = 1000
	}
	o := &Outbox{dir: c.Dir, keep: c.Keep}
	if err := os.MkdirAll(filepath.Join(c.Dir, devices), 0o700); err != nil {
		return nil, fmt.Errorf("outbox: %w", err)
	}
	for _, dir := range []string{c.Dir, filepath.Join(c.Dir, devices)} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, fmt.Errorf("outbox: %w", err)
		}
		for _, e := range entries {
			switch {
			case strings.HasPrefix(e.Name(), atomicfile.Unfinished):
				if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
					return nil, fmt.Errorf("outbox: %w", err)
				}
			case dir == c.Dir && file.MatchString(e.Name()):
				o.names = append(o.names, e.Name())
			}
		}
	}
	slices.Sort(o.names)
	return o, o.trim()
}

// Carry implements mail.Carrier: it keeps the mail, with the id that it has.
func (o *Outbox) Carry(ctx context.Context, e mail.Envelope) (id string, err error) {
	return e.ID, o.add(ctx, "eml", e.Raw)
}

// add keeps a file under the next id.
func (o *Outbox) add(ctx context.Context, kind string, content []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	name := o.next(time.Now()) + "." + kind
	if err := atomicfile.Write(filepath.Join(o.dir, name), content, 0o600); err != nil {
		return fmt.Errorf("outbox: %w", err)
	}
	o.names = append(o.names, name)
	return o.trim()
}

// next is an id after all that are there.
func (o *Outbox) next(now time.Time) string {
	id := now.UTC().Format(idForm)
	if len(o.names) == 0 {
		return id
	}
	last := idOf(o.names[len(o.names)-1])
	if id > last {
		return id
	}
	at, err := time.Parse(idForm, last)
	if err != nil {
		return id // digits that are no time: not a file of ours
	}
	return at.Add(time.Microsecond).Format(idForm)
}

func idOf(name string) string { return strings.TrimSuffix(name, filepath.Ext(name)) }

// trim removes the oldest files beyond those to keep.
func (o *Outbox) trim() error {
	for len(o.names) > o.keep {
		if err := os.Remove(filepath.Join(o.dir, o.names[0])); err != nil && !os.IsNotExist(err) {
			return fmt.Errorf("outbox: %w", err)
		}
		o.names = slices.Delete(o.names, 0, 1)
	}
	return nil
}
