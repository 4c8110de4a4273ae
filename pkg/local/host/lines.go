package host

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

// maxLine is the longest line of a function's output, in bytes; a longer one is broken.
const maxLine = 64 << 10

// lines hands a function's output to the log. A line of a structured log keeps its level and attributes; any other, as of a panic, is a warning.
type lines struct {
	log      *slog.Logger
	function string

	mu   sync.Mutex
	rest []byte
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, b...)
	for {
		at := bytes.IndexByte(l.rest, '\n')
		if at < 0 && len(l.rest) < maxLine {
			return len(b), nil
		}
		if at < 0 {
			at = maxLine - 1
		}
		if line := bytes.TrimSpace(l.rest[:at+1]); len(line) > 0 {
			l.record(line)
		}
		l.rest = append([]byte(nil), l.rest[at+1:]...)
	}
}

func (l *lines) record(line []byte) {
	var said map[string]any
	var level slog.Level
	name, message := "", ""
	if json.Unmarshal(line, &said) == nil {
		name, _ = said["level"].(string)
		message, _ = said["message"].(string)
	}
	if message == "" || level.UnmarshalText([]byte(name)) != nil {
		l.log.Warn(string(line), "function", l.function)
		return
	}
	when := time.Now()
	if text, ok := said["timestamp"].(string); ok {
		if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
			when = at.Local()
		}
	}
	record := slog.NewRecord(when, level, message, 0)
	record.AddAttrs(slog.String("function", l.function))
	for _, name := range slices.Sorted(maps.Keys(said)) {
		switch name {
		case "level", "message", "timestamp", "function":
		default:
			record.AddAttrs(slog.Any(name, said[name]))
		}
	}
	if handler := l.log.Handler(); handler.Enabled(context.Background(), level) {
		_ = handler.Handle(context.Background(), record) // a log that cannot be written to has nobody to tell
	}
}
