package trace

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
)

// Logs is next, with whose work it is in each line: tenant_id, thread_id, turn_id and request_id, as far as the context knows. A line that says one of them itself keeps its own.
//
// The text of an error may quote what people, models and tools have written. In the lines of a tenant's work only its types are told, unless texts is set.
func Logs(next slog.Handler, texts bool) slog.Handler { return logs{next, texts} }

type logs struct {
	slog.Handler
	texts bool
}

// Handle implements slog.Handler.
func (l logs) Handle(ctx context.Context, r slog.Record) error {
	of := From(ctx)
	if of == (Scope{}) {
		return l.Handler.Handle(ctx, r)
	}
	told := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	said := map[string]bool{}
	r.Attrs(func(a slog.Attr) bool {
		said[a.Key] = true
		if err, ok := a.Value.Any().(error); ok && !l.texts && of.TenantID != "" {
			a.Value = slog.StringValue(Types(err))
		}
		told.AddAttrs(a)
		return true
	})
	for _, id := range []struct{ key, value string }{{"tenant_id", of.TenantID}, {"thread_id", of.ThreadID}, {"turn_id", of.TurnID}, {"request_id", of.RequestID}} {
		if id.value != "" && !said[id.key] {
			told.AddAttrs(slog.String(id.key, id.value))
		}
	}
	return l.Handler.Handle(ctx, told)
}

// WithAttrs implements slog.Handler.
func (l logs) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logs{l.Handler.WithAttrs(attrs), l.texts}
}

// WithGroup implements slog.Handler.
func (l logs) WithGroup(name string) slog.Handler { return logs{l.Handler.WithGroup(name), l.texts} }

// Type is an error in one word of few: what it says of itself, else the Go type of what is behind it. "": no error.
func Type(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "canceled"
	}
	names := types(err)
	for _, n := range names {
		if n.own {
			return n.name
		}
	}
	return names[len(names)-1].name
}

// Types is an error and all that is behind it, without their texts: "*model.Error(validation) *types.ValidationException(ValidationException)".
func Types(err error) string {
	var b strings.Builder
	for i, n := range types(err) {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(n.goType)
		if n.own {
			b.WriteString("(" + n.name + ")")
		}
	}
	return b.String()
}

type typeName struct {
	goType, name string
	own          bool // it says so itself
}

// mostTypes bounds how deep an error is looked into.
const mostTypes = 16

func types(err error) (found []typeName) {
	for next := []error{err}; len(next) > 0 && len(found) < mostTypes; {
		err, next = next[0], next[1:]
		if err == nil {
			continue
		}
		goType := fmt.Sprintf("%T", err)
		name, own := ownType(err)
		switch goType {
		case "*fmt.wrapError", "*fmt.wrapErrors", "*errors.joinError": // tell nothing
		default:
			if !own {
				name = goType
			}
			found = append(found, typeName{goType, name, own})
		}
		switch e := any(err).(type) { // of this one alone, not of what it wraps
		case interface{ Unwrap() error }:
			next = append(next, e.Unwrap())
		case interface{ Unwrap() []error }:
			next = append(next, e.Unwrap()...)
		}
	}
	if len(found) == 0 {
		goType := fmt.Sprintf("%T", err)
		found = append(found, typeName{goType, goType, false})
	}
	return found
}

// ownType is what an error says of itself: this platform's, an SDK's of AWS, PostgreSQL's.
func ownType(err error) (string, bool) {
	switch e := any(err).(type) { // of this one alone, not of what it wraps
	case interface{ ErrorType() string }:
		return e.ErrorType(), true
	case interface{ ErrorCode() string }:
		return e.ErrorCode(), true
	case interface{ SQLState() string }:
		return e.SQLState(), true
	}
	return "", false
}
