// Package metric tells of what happened, once: as a line of the log, and as the metrics that are made of the same figures. There is no second way to count.
//
// It is a port: in AWS the line itself carries the metrics (EMF), on one machine a page adds them up. Without a sink there is the line.
package metric

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

// Unit is a figure's unit, as CloudWatch has it.
type Unit string

const (
	Count        Unit = "Count"
	Seconds      Unit = "Seconds"
	Milliseconds Unit = "Milliseconds"
	None         Unit = "None" // of money
)

// Event is something that happened.
type Event struct {
	Line  string      // the log line's message
	Level slog.Level  // the default is Info, below which CloudWatch is given no metrics
	About []slog.Attr // what else the line says
	Sets  []Set
}

// Set is figures that are kept apart by the same dimension.
type Set struct {
	By      string // the dimension's name: "status"; empty: they are not kept apart
	Value   string // one of few; never a tenant, a thread or a person
	Figures []Figure
}

// Figure is one figure. Its name is unique in the event.
type Figure struct {
	Name  string // "turn.duration"
	Unit  Unit
	Value float64
}

// Sink makes metrics of events, for many goroutines at once.
type Sink interface {
	// Take is given each event; what it returns goes into the event's line.
	Take(e Event) []slog.Attr
}

var standard atomic.Pointer[Sink]

// SetDefault makes s the sink; nil: there are only lines.
func SetDefault(s Sink) {
	if s == nil {
		standard.Store(nil)
		return
	}
	standard.Store(&s)
}

// Emit writes the line of e, and makes its metrics.
func Emit(ctx context.Context, e Event) {
	attrs := make([]slog.Attr, 0, len(e.About)+16)
	attrs = append(attrs, e.About...)
	for _, s := range e.Sets {
		if s.By != "" {
			attrs = append(attrs, slog.String(s.By, s.Value))
		}
		for _, f := range s.Figures {
			attrs = append(attrs, f.attr())
		}
	}
	if s := standard.Load(); s != nil {
		attrs = append(attrs, (*s).Take(e)...)
	}
	slog.LogAttrs(ctx, e.Level, e.Line, attrs...)
}

// attr is the figure in the line: a whole number without a point.
func (f Figure) attr() slog.Attr {
	if f.Value == float64(int64(f.Value)) {
		return slog.Int64(f.Name, int64(f.Value))
	}
	return slog.Float64(f.Name, f.Value)
}

// Of is a figure that counts.
func Of(name string, n int) Figure { return Figure{name, Count, float64(n)} }

// Took is a figure of time.
func Took(name string, d time.Duration) Figure {
	return Figure{name, Milliseconds, float64(d.Microseconds()) / 1000}
}
