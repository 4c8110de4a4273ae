// Package mcp is the platform as a client of MCP tool servers (https://modelcontextprotocol.io), over the official Go SDK: it connects, asks for the list of
// tools, and calls them.
//
// A server is a stranger. What holds, whatever it does:
//
//   - Everything it is asked ends: Connect and Tools within the target's limits, Call within its context, Close within seconds.
//   - What it sends is bounded: bytes and requests that it causes, for each thing it is asked; a list has MaxTools tools, with bounded names, descriptions and
//     schemas; a result has MaxText. The bounds of pkg/egress hold below.
//   - Nothing goes to another origin than the server's: no redirect, no endpoint that it names. So credentials cannot either.
//   - It can ask for nothing: no sampling, no elicitation, no roots; notifications are not read.
//   - Errors are *Error, with a reason that the tenant may read: it has no URL and no credential in it.
package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// closeTimeout is for the goodbye; then connections are cut.
const closeTimeout = 2 * time.Second

// What a server may cause for each thing it is asked.
const (
	maxBytes    = 4 << 20 // that it sends, as unpacked
	maxLines    = 5000    // of streams of events, which have three or so each
	maxRequests = 50      // that the client makes: pages of a list, answers to questions
)

// Transport is how a server is spoken to.
type Transport string

const (
	Auto       Transport = "AUTO"            // streamable HTTP, and where the server does not know it, SSE
	Streamable Transport = "STREAMABLE_HTTP" // MCP 2025-03-26 and later
	SSE        Transport = "SSE"             // MCP 2024-11-05: a stream of events, and an endpoint to post to
)

// Target is a server to connect to.
type Target struct {
	URL       string
	Transport Transport     // empty: Auto
	Header    http.Header   // credentials, for the URL's origin only
	Connect   time.Duration // for Connect, with each transport. Default 10 s
	List      time.Duration // for Tools. Default 30 s
}

// Session is a connection to a server. It is safe for concurrent use. Close it.
type Session struct {
	Transport Transport // that it speaks

	client *mcp.ClientSession
	wire   *wire
	list   time.Duration
	ctx    context.Context // ends with the session
	end    context.CancelCauseFunc
	close  sync.Once
}

var errClosed = errors.New("mcp: the session is closed")

// Connect opens a session. over is pkg/egress's client; its Answer must be as long as a call may take.
func Connect(ctx context.Context, over *http.Client, to Target) (*Session, error) {
	u, err := url.Parse(to.URL)
	if err != nil {
		return nil, &Error{Kind: Failed, Reason: "the URL cannot be understood"}
	}
	if to.Connect == 0 {
		to.Connect = 10 * time.Second
	}
	if to.List == 0 {
		to.List = 30 * time.Second
	}
	switch to.Transport {
	case Streamable, SSE:
		return connect(ctx, over, u, to)
	}
	to.Transport = Streamable
	s, err := connect(ctx, over, u, to)
	var e *Error
	if errors.As(err, &e) && e.Unspoken() {
		to.Transport = SSE
		older, again := connect(ctx, over, u, to)
		if again == nil {
			return older, nil
		}
		if !errors.As(again, &e) || e.status == 0 {
			err = again
		}
	}
	return s, err
}

func connect(ctx context.Context, over *http.Client, u *url.URL, to Target) (*Session, error) {
	s := &Session{Transport: to.Transport, list: to.List}
	s.ctx, s.end = context.WithCancelCause(context.WithoutCancel(ctx))
	s.wire = &wire{base: over.Transport, origin: u, header: to.Header, session: s.ctx}
	client := &http.Client{Transport: s.wire, CheckRedirect: s.wire.checkRedirect(over.CheckRedirect)}
	var transport mcp.Transport = &mcp.StreamableClientTransport{Endpoint: to.URL, HTTPClient: client, MaxRetries: 2, DisableStandaloneSSE: true, MaxEventSize: 2 * maxBytes}
	if to.Transport == SSE {
		transport = &mcp.SSEClientTransport{Endpoint: to.URL, HTTPClient: client, MaxEventSize: 2 * maxBytes}
	}
	// The SDK reads an SSE stream under the context of Connect, so that one must last.
	o := s.wire.begin()
	defer s.wire.end()
	stopped := context.AfterFunc(ctx, func() { s.end(ctx.Err()) })
	timer := time.AfterFunc(to.Connect, func() { s.end(errTimeout) })
	var err error
	s.client, err = implementation().Connect(context.WithValue(s.ctx, operation{}, o), transport, nil)
	if !timer.Stop() && err == nil {
		err = errTimeout
	}
	if !stopped() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		err = s.explain(ctx, o, err, to.Connect)
		if s.client != nil {
			s.Close()
		}
		s.end(errClosed)
		return nil, err
	}
	return s, nil
}

func implementation() *mcp.Client {
	return mcp.NewClient(&mcp.Implementation{Name: "agentplatform", Version: "1.0.0"}, &mcp.ClientOptions{
		Logger: slog.New(slog.DiscardHandler), Capabilities: &mcp.ClientCapabilities{}, MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true}})
}

// Close says goodbye to the server, and cuts what is still open.
func (s *Session) Close() {
	s.close.Do(func() {
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = s.client.Close() // a server that does not take the goodbye changes nothing
		}()
		timer := time.NewTimer(closeTimeout)
		defer timer.Stop()
		select {
		case <-done:
		case <-timer.C:
		}
		s.end(errClosed)
		<-done
	})
}

// during runs one thing that the server is asked, for at most limit (0: as long as ctx), and not longer than the session lasts.
func (s *Session) during(ctx context.Context, limit time.Duration, ask func(ctx context.Context) error) error {
	o := s.wire.begin()
	defer s.wire.end()
	within, cancel := context.WithCancelCause(context.WithValue(ctx, operation{}, o))
	defer cancel(nil)
	defer context.AfterFunc(s.ctx, func() { cancel(context.Cause(s.ctx)) })()
	if limit > 0 {
		timer := time.AfterFunc(limit, func() { cancel(errTimeout) })
		defer timer.Stop()
	}
	err := ask(within)
	if err == nil {
		return nil
	}
	if cause := context.Cause(within); cause != nil {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	return s.explain(ctx, o, err, limit)
}
