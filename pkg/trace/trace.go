// Package trace tells how the work of a turn is spent, as spans: one around each turn, phase, model call and tool call. It also says whose work it is: to the spans, and to each line of the
// log.
//
// It is a port: whoever starts the program plugs in a Sink (SetDefault), or none. Without one a span costs a look into the context and no allocation.
//
// Spans hold names, numbers, ids and types of errors. They never hold what people, models or tools have written, and no text of an error, which may quote it.
package trace

import (
	"context"
	"sync/atomic"
	"time"
)

// Kind says which side of a call a span is on.
type Kind int

const (
	Internal Kind = iota // work of this process
	Client               // a call of another service
)

// Sink takes spans, from many goroutines at once.
type Sink interface {
	// Start begins a span below the one that ctx holds. The context that it returns holds the new one. A nil Recorder: nobody wants this span.
	Start(ctx context.Context, name string, kind Kind, at time.Time) (context.Context, Recorder)
}

// Recorder is one span in a sink. It is used by one goroutine at a time, and not after its End.
type Recorder interface {
	Set(key string, value any) // a string, int, float64, bool or []string
	Fail(errorType string)     // the work failed; the type is short and one of few
	End()
}

// Span is a span on its way; nil is one that nobody records, and has all methods.
type Span struct{ recorder Recorder }

var standard atomic.Pointer[Sink]

// SetDefault makes s the sink of contexts that have none of their own; nil: no sink.
func SetDefault(s Sink) {
	if s == nil {
		standard.Store(nil)
		return
	}
	standard.Store(&s)
}

type sinkKey struct{}

// With has the spans below ctx go to s.
func With(ctx context.Context, s Sink) context.Context { return context.WithValue(ctx, sinkKey{}, s) }

func sink(ctx context.Context) Sink {
	if s, ok := ctx.Value(sinkKey{}).(Sink); ok {
		return s
	}
	if s := standard.Load(); s != nil {
		return *s
	}
	return nil
}

// Start begins a span below that of ctx. It is called by its operation, and by what that is done to where there is such a thing. Who begins it Ends it.
func Start(ctx context.Context, kind Kind, operation, target string) (context.Context, *Span) {
	return StartAt(ctx, time.Time{}, kind, operation, target)
}

// StartAt is Start of what has begun before: at that time, or now for the zero time.
func StartAt(ctx context.Context, at time.Time, kind Kind, operation, target string) (context.Context, *Span) {
	to := sink(ctx)
	if to == nil {
		return ctx, nil
	}
	if at.IsZero() {
		at = time.Now()
	}
	if target != "" {
		operation += " " + target
	}
	ctx, r := to.Start(ctx, operation, kind, at)
	if r == nil {
		return ctx, nil
	}
	return ctx, &Span{r}
}

// String adds an attribute; an empty one says nothing and is left out.
func (s *Span) String(key, value string) {
	if s != nil && value != "" {
		s.recorder.Set(key, value)
	}
}

// Strings adds an attribute of one or more strings.
func (s *Span) Strings(key string, values ...string) {
	if s != nil && len(values) > 0 {
		s.recorder.Set(key, append([]string(nil), values...))
	}
}

// Int adds an attribute.
func (s *Span) Int(key string, value int) {
	if s != nil {
		s.recorder.Set(key, value)
	}
}

// Float adds an attribute.
func (s *Span) Float(key string, value float64) {
	if s != nil {
		s.recorder.Set(key, value)
	}
}

// Fail says that the work failed, and by what type of error. "" is no failure.
func (s *Span) Fail(errorType string) {
	if s != nil && errorType != "" {
		s.recorder.Fail(errorType)
	}
}

// End ends the span.
func (s *Span) End() {
	if s != nil {
		s.recorder.End()
	}
}
