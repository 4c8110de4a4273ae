package model

import (
	"context"
	"errors"
	"net"
)

// Reason says why a call failed.
type Reason string

const (
	Throttled   Reason = "throttled"   // the provider's rate limit or quota
	Unavailable Reason = "unavailable" // the provider or the way to it is down
	TimedOut    Reason = "timeout"     // no answer in time, the caller's deadline included
	Broken      Reason = "stream"      // the answer broke off
	Malformed   Reason = "malformed"   // the answer is not usable, e.g. a tool input that is no JSON object
	Truncated   Reason = "truncated"   // the token limit cut a tool call short
	Invalid     Reason = "validation"  // the request was refused
	TooLong     Reason = "too_long"    // the conversation exceeds the model's context
	Missing     Reason = "missing"     // no such model here
	Denied      Reason = "denied"      // no access to the model, or bad credentials
	Canceled    Reason = "canceled"    // the caller gave up
)

// messages is what a tenant reads. Fixed sentences: a provider's own text may name accounts, roles and other tenants' limits.
var messages = map[Reason]string{
	Throttled:   "The language model is receiving too many requests. Please try again in a moment.",
	Unavailable: "The language model is not available at the moment. Please try again later.",
	TimedOut:    "The language model did not answer in time.",
	Broken:      "The language model's answer broke off before it was complete.",
	Malformed:   "The language model gave an answer that could not be read.",
	Truncated:   "The language model reached its token limit in the middle of a tool call.",
	Invalid:     "The language model refused the request as invalid.",
	TooLong:     "The conversation is too long for the language model.",
	Missing:     "The agent's language model does not exist or is not offered in this region.",
	Denied:      "The platform has no access to the agent's language model.",
	Canceled:    "The request was cancelled.",
}

// Error is why a call failed for good.
type Error struct {
	Reason   Reason
	Message  string // for the tenant
	Attempts int    // how often the model was asked; at least 1

	retry bool  // another attempt may succeed
	cause error // for the log: may hold ids and addresses of the operator
}

func (e *Error) Error() string { return e.Message }

// Unwrap is the cause, for the log and errors.Is; it must not reach a tenant.
func (e *Error) Unwrap() error { return e.cause }

// ErrorType is the reason, for who may not have the cause.
func (e *Error) ErrorType() string { return string(e.Reason) }

// Temporary reports whether another attempt may succeed.
func (e *Error) Temporary() bool { return e.retry }

// Failure is an attempt that failed; retry says whether another may succeed.
func Failure(reason Reason, retry bool, cause error) *Error {
	return &Error{Reason: reason, Message: messages[reason], Attempts: 1, retry: retry, cause: cause}
}

// Failed turns whatever an attempt failed with into an *Error, as far as one can see without knowing the provider. streaming: the answer had
// begun.
func Failed(ctx context.Context, err error, streaming bool) *Error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	// The caller's end shows up as a dozen different transport errors: ask the context itself.
	if ctx.Err() != nil {
		return ended(ctx, err)
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		return Failure(TimedOut, true, err)
	}
	if streaming {
		return Failure(Broken, true, err)
	}
	return Failure(Unavailable, true, err)
}

// ended is the failure of a call whose context is over; errors.Is finds the context's error in it.
func ended(ctx context.Context, err error) *Error {
	cause := errors.Join(ctx.Err(), err)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return Failure(TimedOut, false, cause)
	}
	return Failure(Canceled, false, cause)
}
