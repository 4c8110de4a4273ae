// Package letters keeps the dead letters of one machine in a folder: a file each, <id>.json, in the form of the records that Lambda's on-failure
// destination puts into a queue.
//
// What holds:
//   - A file is there whole or not at all, and readable by its owner only: payloads are people's.
//   - What a person puts there as *.json is a letter too, and a file that a person removes is gone.
//   - Who holds which letter is known to this process only: after a restart nobody holds any.
//   - The folder does not grow for ever: letters are kept for deadletter.Kept, and no more than Config.Most of them.
package letters

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/agentplatform/agentplatform/pkg/atomicfile"
	"github.com/agentplatform/agentplatform/pkg/deadletter"
	"github.com/agentplatform/agentplatform/pkg/ident"
)

// Config is what a Box needs.
type Config struct {
	Dir    string // made when there is none. Required
	Prefix string // what comes before a manifest name in a function's name
	Most   int    // letters; the oldest make room. Default 10,000
}

// Box is a deadletter.Queue. Make one by Open.
type Box struct {
	config Config

	mu   sync.Mutex
	held map[string]hold // by letter
}

type hold struct {
	receipt string
	until   time.Time
}

const suffix = ".json"

// Open opens the folder.
func Open(c Config) (*Box, error) {
	if c.Most == 0 {
		c.Most = 10_000
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("dead letters: %w", err)
	}
	left, _ := filepath.Glob(filepath.Join(globbed(c.Dir), atomicfile.Unfinished+"*")) // by a process that was killed; the pattern is a right one
	for _, name := range left {
		_ = os.Remove(name)
	}
	return &Box{config: c, held: map[string]hold{}}, nil
}

// globbed is a path as part of a pattern that matches it only.
func globbed(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// Dir is the folder.
func (b *Box) Dir() string { return b.config.Dir }

// Put keeps a record and gives its letter's id.
func (b *Box) Put(r deadletter.Record) (id string, err error) {
	var body bytes.Buffer
	text := json.NewEncoder(&body)
	text.SetEscapeHTML(false) // the payload stays as it is
	if err := text.Encode(r); err != nil {
		return "", fmt.Errorf("dead letters: %w", err)
	}
	id = ident.New()
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := writeFile(b.path(id), body.Bytes()); err != nil {
		return "", fmt.Errorf("dead letters: %w", err)
	}
	if _, err := b.list(); err != nil { // makes room
		slog.Warn("old dead letters were not removed", "error", err)
	}
	return id, nil
}

// Receive implements deadletter.Queue, the oldest letters first.
func (b *Box) Receive(ctx context.Context, limit int, holdFor time.Duration) (received []deadletter.Letter, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	files, err := b.list()
	if err != nil {
		return nil, fmt.Errorf("dead letters: %w", err)
	}
	var unread []error
	for _, f := range files {
		if len(received) >= limit {
			break
		}
		id := strings.TrimSuffix(f.Name(), suffix)
		if b.held[id].until.After(time.Now()) {
			continue
		}
		body, err := os.ReadFile(b.path(id))
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) { // somebody has just removed it
				unread = append(unread, err)
			}
			continue
		}
		l := deadletter.Decode(deadletter.Message{ID: id, Body: string(body), Sent: f.ModTime()}, b.config.Prefix)
		l.Receipt, l.Until = ident.New(), time.Now().Add(time.Duration(deadletter.Seconds(holdFor))*time.Second)
		b.held[id] = hold{l.Receipt, l.Until}
		received = append(received, l)
	}
	if err := errors.Join(unread...); err != nil {
		return received, fmt.Errorf("dead letters: %w", err)
	}
	return received, nil
}

// Delete implements deadletter.Queue.
func (b *Box) Delete(ctx context.Context, l deadletter.Letter) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if h, held := b.held[l.ID]; l.Expired() || held && h.receipt != l.Receipt {
		return fmt.Errorf("letter %s: %w", l.ID, deadletter.ErrExpired)
	}
	if err := os.Remove(b.path(l.ID)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("dead letters: %w", err)
	}
	delete(b.held, l.ID)
	return nil
}

// Release implements deadletter.Queue.
func (b *Box) Release(ctx context.Context, l deadletter.Letter) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held[l.ID].receipt == l.Receipt {
		delete(b.held, l.ID)
	}
	return nil
}

func (b *Box) path(id string) string { return filepath.Join(b.config.Dir, filepath.Base(id)+suffix) }
