// Package fault is the platform's one error: a type that callers branch on and a message that they may read.
//
// Everything that is not a *fault.Error is an InternalError to the caller: its text stays in the log.
package fault

import (
	"errors"
	"fmt"
	"net/http"
)

// Type is one of the seven error types of the API.
type Type string

const (
	Unauthorized      Type = "Unauthorized"      // missing or invalid JWT
	Forbidden         Type = "Forbidden"         // valid JWT, insufficient permissions
	NotFound          Type = "NotFound"          // resource does not exist, or is another tenant's
	ValidationError   Type = "ValidationError"   // input validation failed
	RateLimitExceeded Type = "RateLimitExceeded" // agent rate limit hit
	BudgetExceeded    Type = "BudgetExceeded"    // agent budget exceeded
	InternalError     Type = "InternalError"     // unexpected server error
)

// statuses is the only table from error type to HTTP status.
var statuses = map[Type]int{
	Unauthorized:      http.StatusUnauthorized,
	Forbidden:         http.StatusForbidden,
	NotFound:          http.StatusNotFound,
	ValidationError:   http.StatusBadRequest,
	RateLimitExceeded: http.StatusTooManyRequests,
	BudgetExceeded:    http.StatusTooManyRequests,
	InternalError:     http.StatusInternalServerError,
}

// Status is the HTTP status of the type; an unknown type is an InternalError.
func (t Type) Status() int {
	if s, ok := statuses[t]; ok {
		return s
	}
	return http.StatusInternalServerError
}

// Error is what a caller is told.
type Error struct {
	Type    Type
	Message string
	status  int   // overrides the type's status where HTTP has a finer one (409, 413, 415)
	cause   error // for the log only
}

func (e *Error) Error() string { return e.Message }

// Unwrap gives the log the cause; it never reaches a caller.
func (e *Error) Unwrap() error { return e.cause }

// ErrorType is the type, for who may not have the message.
func (e *Error) ErrorType() string { return string(e.Type) }

// Status is the HTTP status to answer with.
func (e *Error) Status() int {
	if e.status != 0 {
		return e.status
	}
	return e.Type.Status()
}

// New makes an error of type t.
func New(t Type, format string, args ...any) *Error {
	return &Error{Type: t, Message: fmt.Sprintf(format, args...)}
}

// Invalid is a ValidationError.
func Invalid(format string, args ...any) *Error { return New(ValidationError, format, args...) }

// Missing is the NotFound of a kind of resource: the same text whether it never existed or is another tenant's.
func Missing(kind string) *Error { return New(NotFound, "%s not found", kind) }

// IsMissing reports whether err is (or wraps) a NotFound.
func IsMissing(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Type == NotFound
}

// WithStatus is e with a finer HTTP status.
func (e *Error) WithStatus(status int) *Error {
	c := *e
	c.status = status
	return &c
}

// From is err as callers see it: itself when it is (or wraps) an *Error, else an InternalError that hides it.
func From(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Type: InternalError, Message: "internal error", cause: err}
}
