package host

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Limits of payloads, in bytes.
const (
	MaxPayload = 6 << 20 // of a request that waits for its answer; an answer may have 100 bytes more
	MaxEvent   = 1 << 20 // of a request for later
	maxAnswer  = MaxPayload + 100
)

var (
	// ErrStopped ends invokes of a host that stops.
	ErrStopped = errors.New("the host of the functions has stopped")
	// ErrUnknown is an invoke of a function that the host does not have.
	ErrUnknown = errors.New("no such function")
	// ErrTooLarge is a payload above its limit.
	ErrTooLarge = errors.New("the payload is too large")
)

// FunctionError is an invoke that reached the function and failed there: what Lambda answers with X-Amz-Function-Error: Unhandled.
type FunctionError struct {
	Type    string // "Runtime.ExitError", "Sandbox.Timedout", "Function.ResponseSizeTooLarge", or what the function reported
	Message string
	Payload []byte // the answer's body: {"errorType", "errorMessage"}, with what else the function reported
}

func (e *FunctionError) Error() string { return e.Type + ": " + e.Message }

// sandbox is an error that the host finds, in Lambda's words.
func sandbox(kind, requestID, format string, args ...any) *FunctionError {
	message := fmt.Sprintf(format, args...)
	if requestID != "" {
		message = "RequestId: " + requestID + " Error: " + message
	}
	payload, _ := json.Marshal(map[string]string{"errorType": kind, "errorMessage": message}) // strings only
	return &FunctionError{kind, message, payload}
}

// reported is an error that the function found. kind is the header's, for a body without one.
func reported(kind string, body []byte) *FunctionError {
	var said struct{ ErrorType, ErrorMessage string }
	if json.Unmarshal(body, &said) != nil {
		return sandbox("Runtime.Unknown", "", "the function reported an error that is no JSON object")
	}
	if said.ErrorType == "" {
		said.ErrorType = kind
	}
	return &FunctionError{said.ErrorType, said.ErrorMessage, body}
}
