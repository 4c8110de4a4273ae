package mcp

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/agentplatform/agentplatform/pkg/egress"
)

// wire is the HTTP below a session: it keeps requests at the server's origin, adds the credentials, counts what goes and comes, cuts everything when the
// session ends, and remembers what went wrong, which the SDK tells as text only.
type wire struct {
	base    http.RoundTripper
	origin  *url.URL
	header  http.Header
	session context.Context

	mu      sync.Mutex
	asked   int   // things that the server is asked at present
	left    bound // for them together
	failure error // what no request of the session can get over
}

// bound is what may still come and go.
type bound struct {
	bytes    int64
	lines    int64 // of streams
	requests int64
}

// operation is the context's key of an outcome.
type operation struct{}

// outcome is how the last request of one thing that the server was asked ended.
type outcome struct {
	status atomic.Int32 // 0: no answer
	err    atomic.Value // of type failed
}

type failed struct{ error }

// begin grants what one more thing that the server is asked may cause; end is for when it is done.
func (w *wire) begin() *outcome {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.asked == 0 {
		w.left = bound{}
	}
	w.asked++
	w.left.bytes += maxBytes
	w.left.lines += maxLines
	w.left.requests += maxRequests
	return &outcome{}
}

func (w *wire) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.asked--; w.asked == 0 {
		w.left = bound{maxBytes, maxLines, maxRequests} // of who says something without being asked
	}
}

func (w *wire) fail(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failure == nil {
		w.failure = err
	}
	return err
}

func (w *wire) failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failure
}

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := w.admit(r); err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // as a RoundTripper must
		}
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	stop := context.AfterFunc(w.session, func() { cancel(context.Cause(w.session)) })
	release := func() {
		stop()
		cancel(nil)
	}
	r = r.Clone(ctx)
	for name, values := range w.header {
		r.Header[name] = values
	}
	response, err := w.base.RoundTrip(r)
	o, _ := r.Context().Value(operation{}).(*outcome)
	if err != nil {
		release()
		if o != nil {
			o.status.Store(0)
			o.err.Store(failed{err})
		}
		return nil, err
	}
	if o != nil && (r.Method == http.MethodPost || response.StatusCode >= http.StatusBadRequest) {
		o.status.Store(int32(response.StatusCode))
	}
	stream := strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream")
	response.Body = &counted{ReadCloser: response.Body, wire: w, stream: stream, release: release, outcome: o}
	return response, nil
}

// admit decides whether a request may leave.
func (w *wire) admit(r *http.Request) error {
	if !egress.SameOrigin(r.URL, w.origin) { // an SSE server names the endpoint to post to
		return w.fail(&Error{Kind: Failed, Reason: "the server names an endpoint at another origin than its own, " + place(r.URL)})
	}
	w.mu.Lock()
	w.left.requests--
	over := w.left.requests < 0
	w.mu.Unlock()
	if over {
		return w.fail(&Error{Kind: Failed, Reason: "the server causes too many requests"})
	}
	return nil
}

// checkRedirect allows redirects within the origin.
func (w *wire) checkRedirect(below func(*http.Request, []*http.Request) error) func(*http.Request, []*http.Request) error {
	return func(r *http.Request, via []*http.Request) error {
		if !egress.SameOrigin(r.URL, w.origin) {
			return w.fail(&Error{Kind: Failed, Reason: "the server redirects to another origin, " + place(r.URL) + ": if it has moved, give its new URL"})
		}
		if err := below(r, via); err != nil {
			return w.fail(&Error{Kind: Failed, Reason: egress.Explain(err)})
		}
		return nil
	}
}

// place is a URL's origin, bounded; a path and a query may hold secrets.
func place(u *url.URL) string {
	s := u.Scheme + "://" + u.Host
	if len(s) > 200 {
		s = s[:200]
	}
	return visible(s)
}

// counted is a body that counts against what may come.
type counted struct {
	io.ReadCloser
	wire    *wire
	stream  bool // of events, each of which costs time
	release func()
	outcome *outcome
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	lines := 0
	if c.stream {
		lines = bytes.Count(p[:n], []byte{'\n'})
	}
	c.wire.mu.Lock()
	c.wire.left.bytes -= int64(n)
	c.wire.left.lines -= int64(lines)
	over := c.wire.left.bytes < 0 || c.wire.left.lines < 0
	c.wire.mu.Unlock()
	if over {
		return 0, c.wire.fail(&Error{Kind: Failed, Reason: "the server sends too much"})
	}
	if err != nil && err != io.EOF && c.outcome != nil { //nolint:errorlint // a Reader's EOF is not wrapped
		c.outcome.err.Store(failed{err})
	}
	return n, err
}

func (c *counted) Close() error {
	err := c.ReadCloser.Close()
	c.release()
	return err
}
