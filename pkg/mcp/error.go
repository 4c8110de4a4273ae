package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentplatform/agentplatform/pkg/egress"
)

// Kind is what follows from an error.
type Kind int

const (
	Failed  Kind = iota // the session is of no more use
	Denied              // the server refuses the credentials (HTTP 401, 403); nothing was done
	Gone                // the server has forgotten the session; nothing was done, and another session may do it
	Refused             // the server answered, with an error; the session goes on
)

// Error is what a server did not do. Reason is for the tenant to read.
type Error struct {
	Kind   Kind
	Reason string
	status int // of the last answer, 0 for none
}

func (e *Error) Error() string { return e.Reason }

// Unspoken reports whether the server may not know the transport: it answered as the specification has it for one that does not (Transports, Backwards
// Compatibility).
func (e *Error) Unspoken() bool {
	return e.status == http.StatusBadRequest || e.status == http.StatusNotFound || e.status == http.StatusMethodNotAllowed
}

// rejected is the SDK's own code of a message that could not be sent.
const rejected = -32005

var errTimeout = errors.New("mcp: no answer in time")

// maxSaid bounds the server's own words in a reason, in bytes.
const maxSaid = 500

// explain is an SDK's error as a reason. The end of the caller's ctx stays what it is.
func (s *Session) explain(ctx context.Context, o *outcome, err error, limit time.Duration) error {
	if ended := ctx.Err(); ended != nil {
		return ended
	}
	status := int(o.status.Load())
	fail := func(kind Kind, format string, args ...any) error {
		return &Error{Kind: kind, Reason: fmt.Sprintf(format, args...), status: status}
	}
	var e *Error
	var said *jsonrpc.Error
	broken, _ := o.err.Load().(failed)
	switch {
	case errors.As(s.wire.failed(), &e):
		return e
	case errors.Is(err, errTimeout), errors.Is(context.Cause(s.ctx), errTimeout):
		return fail(Failed, "the server did not answer within %s", limit)
	case errors.Is(context.Cause(s.ctx), errClosed):
		return fail(Failed, "the session is closed")
	case status == http.StatusUnauthorized:
		return fail(Denied, "the server refuses the credentials, or wants some (HTTP 401)")
	case status == http.StatusForbidden:
		return fail(Denied, "the server refuses the credentials (HTTP 403)")
	case errors.Is(err, mcp.ErrSessionMissing):
		return fail(Gone, "the server has ended the session")
	case errors.As(err, &said) && said.Code != rejected:
		return fail(Refused, "the server answers: %s", cut(visible(said.Message), maxSaid))
	case status >= http.StatusBadRequest:
		return fail(Failed, "the server answers with HTTP status %d", status)
	case broken.error != nil:
		return fail(Failed, "%s", egress.Explain(broken.error))
	}
	return fail(Failed, "the server does not answer as an MCP server should")
}
