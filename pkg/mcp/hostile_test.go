package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/mcp"
)

// hostile is a server that does as MCP says until the method that its test names, and there what the test says.
type hostile struct {
	method string // initialize, tools/list, tools/call, or a path's
	does   http.HandlerFunc
	tools  string       // tools/list's result
	asked  atomic.Int32 // requests
}

func (h *hostile) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.asked.Add(1)
	var in struct {
		ID     json.RawMessage
		Method string
	}
	body, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(body, &in)
	if in.Method == h.method || r.Method == h.method {
		h.does(w, r.WithContext(context.WithValue(r.Context(), id{}, string(in.ID))))
		return
	}
	result := ""
	switch in.Method {
	case "initialize":
		result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"hostile","version":"1"}}`
	case "tools/list":
		if result = h.tools; result == "" {
			result = `{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}`
		}
	case "tools/call":
		result = `{"content":[{"type":"text","text":"fine"}]}`
	case "server/discover":
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`, in.ID)
		return
	default:
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, in.ID, result)
}

// id is the context's key of the request's id.
type id struct{}

// answer gives a result, or an error, as JSON-RPC.
func answer(w http.ResponseWriter, r *http.Request, member, value string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"%s":%s}`, r.Context().Value(id{}), member, value)
}

func (h *hostile) start(t *testing.T) string {
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL + "/mcp?api_key=s3cr3t"
}

// hang waits until the client has gone.
func hang(w http.ResponseWriter, r *http.Request) {
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}

// ask does the whole of it; the error is of the step that failed.
func ask(t *testing.T, to mcp.Target) (r mcp.Result, step string, err error) {
	t.Helper()
	to.Header = http.Header{"Authorization": {"Bearer s3cr3t"}}
	s, err := mcp.Connect(t.Context(), over(t), to)
	if err != nil {
		return r, "initialize", err
	}
	defer s.Close()
	if _, _, err = s.Tools(t.Context()); err != nil {
		return r, "tools/list", err
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err = s.Call(ctx, "t", nil)
	return r, "tools/call", err
}

// stream writes this event, again and again, until the client has gone.
func stream(event string, times int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for range times {
			if _, err := io.WriteString(w, event); err != nil || r.Context().Err() != nil {
				return
			}
		}
		hang(w, r)
	}
}

const endless = 1 << 30

func TestAHostileServerEndsInAReason(t *testing.T) {
	for name, c := range map[string]struct {
		does http.HandlerFunc
		says string // %: the limit, where the step has one
	}{
		"resets":    {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "the server broke the connection off"},
		"hangs":     {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "the server did not answer within %"},
		"says HTML": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>Welcome</html>") }, "the server does not answer as an MCP server should"},
		"says 503":  {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }, "the server answers with HTTP status 503"},
		"says 401":  {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }, "the server refuses the credentials, or wants some (HTTP 401)"},
		"says 403":  {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, "the server refuses the credentials (HTTP 403)"},
		"no JSON":   {func(w http.ResponseWriter, r *http.Request) { answer(w, r, "result", "{") }, "the server does not answer as an MCP server should"},
		"wrong JSON": {func(w http.ResponseWriter, r *http.Request) {
			answer(w, r, "result", `{"protocolVersion":7,"tools":7,"content":7}`)
		}, "the server does not answer as an MCP server should"},
		"bottomless": {func(w http.ResponseWriter, r *http.Request) { answer(w, r, "result", strings.Repeat("[", 1<<20)) }, "the server does not answer as an MCP server should"},
		"an error": {func(w http.ResponseWriter, r *http.Request) {
			answer(w, r, "error", `{"code":-32000,"message":"out of paper"}`)
		}, "the server answers: out of paper"},
		"long error": {func(w http.ResponseWriter, r *http.Request) {
			answer(w, r, "error", `{"code":-32000,"message":"`+strings.Repeat("x", 1<<20)+`"}`)
		}, "the server answers: " + strings.Repeat("x", 500) + "…"},
		"metadata": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://169.254.169.254/latest/meta-data/?s3cr3t", http.StatusTemporaryRedirect)
		}, "the server redirects to another origin, http://169.254.169.254: if it has moved, give its new URL"},
		"goes round": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
		}, "more than 5 redirects"},
		"too long": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for chunk := []byte(strings.Repeat(" ", 64<<10)); ; {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}, "the server sends too much"},
		"cut short": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, `{"jsonrpc":`)
		}, "the server broke the connection off"},
		"an endless event": {stream("data: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n", endless), "the server sends too much"},
		"endless events":   {stream("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":\"x\"}}\n\n", endless), "the server sends too much"},
		"endless comments": {stream(": x\n\n", endless), "the server sends too much"},
		"endless answers":  {stream("data: {\"jsonrpc\":\"2.0\",\"id\":4711,\"result\":{}}\n\n", endless), "the server sends too much"},
		"endless pings":    {stream("data: {\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}\n\n", 2000), "the server %"},
		"a silent stream":  {stream("", 0), "the server did not answer within %"},
		"stream of lies":   {stream("data: nonsense\n\n", 1), "the server does not answer as an MCP server should"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, method := range []string{"initialize", "tools/list", "tools/call"} {
				h := &hostile{method: method, does: c.does}
				limit := 300 * time.Millisecond
				to := mcp.Target{URL: h.start(t), Transport: mcp.Streamable, Connect: limit, List: limit}
				if !strings.Contains(c.says, "%") {
					to.Connect, to.List = time.Minute, time.Minute
				} else if method == "tools/call" {
					continue // has the caller's time
				}
				_, step, err := ask(t, to)
				require.Equal(t, method, step, "%v", err)
				var e *mcp.Error
				require.ErrorAs(t, err, &e)
				require.NotContains(t, err.Error(), "s3cr3t")
				if says, limited := strings.CutSuffix(c.says, "%"); limited {
					require.True(t, strings.HasPrefix(err.Error(), says), "%s: %v", method, err)
				} else {
					require.EqualError(t, err, c.says, method)
				}
				require.Less(t, h.asked.Load(), int32(200))
			}
		})
	}
}

// The caller's own time is the caller's: its end is no *Error.
func TestTheCallersTime(t *testing.T) {
	h := &hostile{method: "tools/call", does: stream("", 0)}
	s, err := mcp.Connect(t.Context(), over(t), mcp.Target{URL: h.start(t)})
	require.NoError(t, err)
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = s.Call(ctx, "t", nil)
	require.Equal(t, context.DeadlineExceeded, err)
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	_, err = s.Call(ctx, "t", nil)
	require.Equal(t, context.Canceled, err)
	_, _, err = s.Tools(t.Context())
	require.NoError(t, err, "the session goes on")
	_, err = mcp.Connect(ctx, over(t), mcp.Target{URL: h.start(t)})
	require.Equal(t, context.Canceled, err)
}

// A server that does not take the goodbye keeps nobody.
func TestCloseEnds(t *testing.T) {
	h := &hostile{method: http.MethodDelete, does: hang}
	mux := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Mcp-Session-Id", "session-1")
		h.ServeHTTP(w, r)
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	s, err := mcp.Connect(t.Context(), over(t), mcp.Target{URL: server.URL})
	require.NoError(t, err)
	s.Close()
}

func TestAForgottenSession(t *testing.T) {
	h := &hostile{method: "tools/call", does: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Mcp-Session-Id", "session-1")
		h.ServeHTTP(w, r)
	}))
	defer server.Close()
	s, err := mcp.Connect(t.Context(), over(t), mcp.Target{URL: server.URL})
	require.NoError(t, err)
	defer s.Close()
	_, err = s.Call(t.Context(), "t", nil)
	var e *mcp.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, mcp.Gone, e.Kind)
}

// The older transport, where the server says where to post to.
func TestAnSSEServerStaysAtItsOrigin(t *testing.T) {
	var stolen atomic.Int32
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { stolen.Add(1) }))
	defer thief.Close()
	for endpoint, says := range map[string]string{
		thief.URL + "/message":                   "the server names an endpoint at another origin than its own, " + thief.URL,
		"http://169.254.169.254/latest?x=s3cr3t": "the server names an endpoint at another origin than its own, http://169.254.169.254",
		"//10.0.0.1/":                            "the server names an endpoint at another origin than its own, http://10.0.0.1",
		"file:///etc/passwd":                     "the server names an endpoint at another origin than its own, file://",
	} {
		h := &hostile{method: http.MethodGet, does: stream("event: endpoint\ndata: "+endpoint+"\n\n", 1)}
		_, _, err := ask(t, mcp.Target{URL: h.start(t), Transport: mcp.SSE, Connect: time.Minute})
		require.EqualError(t, err, says)
	}
	require.Zero(t, stolen.Load())
	for says, does := range map[string]http.HandlerFunc{
		"the server answers with HTTP status 404":            func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) },
		"the server does not answer as an MCP server should": stream("data: x\n\n", 1),
		"the server did not answer within 100ms":             hang,
		"the server broke the connection off":                func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"the server sends too much":                          stream(": x\n\n", endless),
	} {
		h := &hostile{method: http.MethodGet, does: does}
		limit := time.Minute
		if strings.Contains(says, "100ms") {
			limit = 100 * time.Millisecond
		}
		_, _, err := ask(t, mcp.Target{URL: h.start(t), Transport: mcp.SSE, Connect: limit})
		require.EqualError(t, err, says)
	}
}

// What is not MCP at all is asked both ways, and the reason is the first one's.
func TestNoServerThere(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	_, err := mcp.Connect(t.Context(), over(t), mcp.Target{URL: server.URL})
	require.EqualError(t, err, "the server answers with HTTP status 404")
	server.Close()
	_, err = mcp.Connect(t.Context(), over(t), mcp.Target{URL: server.URL})
	require.EqualError(t, err, "the server refused the connection")
	_, err = mcp.Connect(t.Context(), over(t), mcp.Target{URL: "https://169.254.169.254/"})
	require.EqualError(t, err, "the host has no address on the internet")
	require.True(t, errors.As(err, new(*mcp.Error)))
}
