package ledger_test

import (
	"bytes"
	"io"
	"log/slog"
	"sync"
	"testing"
)

// captured gives what was logged since it was last asked.
func captured(t *testing.T) func() string {
	t.Helper()
	var mu sync.Mutex
	var lines bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(writer(func(b []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return lines.Write(b)
	}), nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		defer lines.Reset()
		return lines.String()
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

var _ io.Writer = writer(nil)
