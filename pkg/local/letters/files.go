package letters

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/agentplatform/agentplatform/pkg/atomicfile"
	"github.com/agentplatform/agentplatform/pkg/deadletter"
)

// list are the letters' files, the oldest first, for ids begin with their time. It removes those whose time is over, and those that are too many. The
// lock is held.
func (b *Box) list() ([]fs.FileInfo, error) {
	entries, err := os.ReadDir(b.config.Dir) // by name
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	oldest := time.Now().Add(-deadletter.Kept)
	var files []fs.FileInfo
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), suffix) || strings.HasPrefix(e.Name(), ".") || e.IsDir() {
			continue
		}
		info, err := e.Info()
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, err
		case info.ModTime().Before(oldest):
			b.remove(info)
		default:
			files = append(files, info)
		}
	}
	if more := len(files) - b.config.Most; more > 0 {
		slog.Warn("there are too many dead letters: the oldest are removed", "removed", more, "kept", b.config.Most)
		for _, info := range files[:more] {
			b.remove(info)
		}
		files = files[more:]
	}
	b.forget()
	return files, nil
}

func (b *Box) remove(info fs.FileInfo) {
	if err := os.Remove(filepath.Join(b.config.Dir, info.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
		slog.Warn("an old dead letter was not removed", "file", info.Name(), "error", err)
	}
}

// forget drops the holds whose time is over, so that they do not gather.
func (b *Box) forget() {
	now := time.Now()
	for id, h := range b.held {
		if !h.until.After(now) {
			delete(b.held, id)
		}
	}
}

// writeFile makes a file that is there whole or not at all, and its folder, if a person has removed that.
func writeFile(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return atomicfile.Write(path, content, 0o600)
}
