package provider_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/egress"
	"github.com/agentplatform/agentplatform/pkg/provider"
)

const token = "xoxb-s3cr3t-v4lu3"

// call POSTs to a server and gives what came of it.
func call(t *testing.T, url string) (http.Header, map[string]any, error) {
	t.Helper()
	return callWith(t.Context(), t, egress.New(egress.Config{Loopback: true}), url)
}

func callWith(ctx context.Context, t *testing.T, client *http.Client, url string) (http.Header, map[string]any, error) {
	t.Helper()
	t.Cleanup(client.CloseIdleConnections)
	r, err := provider.Request(ctx, http.MethodPost, url, map[string]string{"say": "hello"})
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	var out map[string]any
	h, err := provider.Do(ctx, client, r, &out)
	if err != nil {
		require.NotContains(t, fmt.Sprintf("%v %+v %#v", err, err, err), token)
		require.NotContains(t, err.Error(), url)
	}
	return h, out, err
}

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func failed(t *testing.T, err error) *provider.Error {
	t.Helper()
	var e *provider.Error
	require.ErrorAs(t, err, &e)
	return e
}

func TestDo(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Next", "page 2")
		_, _ = fmt.Fprintf(w, `{"body": %q, "method": %q, "type": %q, "accept": %q, "agent": %q, "by": %q}`, body, r.Method, r.Header.Get("Content-Type"), r.Header.Get("Accept"),
			r.Header.Get("User-Agent"), r.Header.Get("Authorization"))
	})
	h, out, err := call(t, url)
	require.NoError(t, err)
	require.Equal(t, "page 2", h.Get("X-Next"))
	require.Equal(t, map[string]any{"body": `{"say":"hello"}`, "method": "POST", "type": "application/json; charset=utf-8", "accept": "application/json", "agent": "agentplatform",
		"by": "Bearer " + token}, out)

	r, err := provider.Request(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	r.Header.Set("Accept", "application/vnd.github+json")
	require.Nil(t, r.Body)
	_, err = provider.Do(t.Context(), egress.New(egress.Config{Loopback: true}), r, &out)
	require.NoError(t, err)
	require.Equal(t, []any{"GET", "application/vnd.github+json", ""}, []any{out["method"], out["accept"], out["type"]})

	_, err = provider.Request(t.Context(), http.MethodGet, "http://a b/", nil)
	require.Equal(t, provider.Refused, failed(t, err).Kind)
}

func TestWhatStatusesMean(t *testing.T) {
	for _, c := range []struct {
		status int
		header http.Header
		kind   provider.Kind
		after  time.Duration
	}{
		{401, nil, provider.Denied, 0},
		{403, nil, provider.Denied, 0},
		{403, http.Header{"X-Ratelimit-Remaining": {"12"}}, provider.Denied, 0},
		{403, http.Header{"Retry-After": {"60"}}, provider.Limited, time.Minute},
		{403, http.Header{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"1"}}, provider.Limited, 0},
		{404, nil, provider.Missing, 0},
		{410, nil, provider.Missing, 0},
		{429, nil, provider.Limited, 0},
		{429, http.Header{"Retry-After": {"1.5"}}, provider.Limited, 1500 * time.Millisecond},
		{429, http.Header{"Retry-After": {"-3"}}, provider.Limited, 0},
		{429, http.Header{"Retry-After": {"999999999999"}}, provider.Limited, 24 * time.Hour},
		{429, http.Header{"Retry-After": {"Sun, 06 Nov 1994 08:49:37 GMT"}}, provider.Limited, 0},
		{429, http.Header{"Retry-After": {"Sun, 06 Nov 2294 08:49:37 GMT"}}, provider.Limited, 24 * time.Hour},
		{429, http.Header{"Retry-After": {"soon"}, "X-Ratelimit-Reset": {"99999999999"}}, provider.Limited, 0},
		{429, http.Header{"X-Ratelimit-Reset": {"99999999999"}}, provider.Limited, 24 * time.Hour},
		{408, nil, provider.Away, 0},
		{503, http.Header{"Retry-After": {"7"}}, provider.Away, 7 * time.Second},
		{503, nil, provider.Unknown, 0},
		{500, nil, provider.Unknown, 0},
		{502, http.Header{"Retry-After": {"7"}}, provider.Unknown, 0},
		{400, nil, provider.Refused, 0},
		{422, http.Header{"Retry-After": {"7"}}, provider.Refused, 0},
		{304, nil, provider.Refused, 0},
	} {
		url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			for name, values := range c.header {
				w.Header()[name] = values
			}
			w.WriteHeader(c.status)
		})
		_, _, err := call(t, url)
		e := failed(t, err)
		require.Equal(t, provider.Error{Kind: c.kind, Reason: fmt.Sprintf("the server answers with HTTP status %d", c.status), After: c.after, Status: c.status}, *e, "%v", c)
		require.Equal(t, c.kind == provider.Limited || c.kind == provider.Away, e.Again())
	}
}

func TestWhatARefusalSays(t *testing.T) {
	for body, says := range map[string]string{
		`{"message": "Validation Failed"}`:                ": Validation Failed",
		`{"message": "a\nb\u0000\u0007c"}`:                ": abc",
		`{"message": "` + token + ` may not do this"}`:    "",
		`{"message": "` + strings.Repeat("x", 301) + `"}`: "",
		`{"message": 7}`:           "",
		`<html>Bad Request</html>`: "",
		``:                         "",
	} {
		url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, body)
		})
		_, out, err := call(t, url)
		require.Equal(t, "the server answers with HTTP status 400"+says, failed(t, err).Reason, body)
		if strings.HasPrefix(body, `{"message": "V`) {
			require.Equal(t, map[string]any{"message": "Validation Failed"}, out, "whoever asked may read it")
		}
	}
}

func TestWhoWasNeverAskedIsAway(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	closed := "http://" + l.Addr().String()
	require.NoError(t, l.Close())
	_, _, err = call(t, closed)
	require.Equal(t, provider.Error{Kind: provider.Away, Reason: "the server refused the connection"}, *failed(t, err))

	plain := serve(t, func(http.ResponseWriter, *http.Request) {})
	_, _, err = call(t, "https"+strings.TrimPrefix(plain, "http"))
	require.Equal(t, provider.Error{Kind: provider.Away, Reason: "the server does not speak TLS as it should"}, *failed(t, err))

	for _, url := range []string{"http://10.0.0.1/", "ftp://example.test/", "https://169.254.169.254/latest"} {
		_, _, err = call(t, url)
		require.Equal(t, provider.Refused, failed(t, err).Kind, url)
	}
	_, _, err = callWith(t.Context(), t, egress.New(egress.Config{}), plain)
	require.Equal(t, provider.Refused, failed(t, err).Kind, "this machine, where that is not allowed")
}

func TestWhoDidNotAnswerMayHaveDoneIt(t *testing.T) {
	asked, release := make(chan struct{}), make(chan struct{})
	slow := serve(t, func(http.ResponseWriter, *http.Request) {
		close(asked)
		<-release
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	_, _, err := callWith(ctx, t, egress.New(egress.Config{Loopback: true}), slow)
	close(release)
	require.Equal(t, provider.Error{Kind: provider.Unknown, Reason: "the request was cancelled"}, *failed(t, err))

	broken := serve(t, func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) })
	_, _, err = call(t, broken)
	require.Equal(t, provider.Error{Kind: provider.Unknown, Reason: "the server broke the connection off"}, *failed(t, err))

	for body, reason := range map[string]string{
		`{"a":`:  "the answer of the server cannot be understood",
		`<html>`: "the answer of the server cannot be understood",
		``:       "the answer of the server cannot be understood",
		`{"a": "` + strings.Repeat("x", 1<<20) + `"}`: "the answer is too large",
	} {
		url := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) })
		_, _, err = call(t, url)
		e := failed(t, err)
		require.Equal(t, provider.Unknown, e.Kind)
		require.Equal(t, reason, e.Reason)
	}
}

// A call goes elsewhere only as it is, and only within its origin.
func TestRedirects(t *testing.T) {
	other := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the call was sent elsewhere") })
	var got []string
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, r.Method+" "+r.URL.Path+" "+string(body)+" "+r.Header.Get("Authorization"))
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/there", http.StatusTemporaryRedirect)
		case "/there":
			_, _ = io.WriteString(w, `{}`)
		case "/get":
			http.Redirect(w, r, "/there", http.StatusFound)
		case "/other":
			http.Redirect(w, r, other, http.StatusPermanentRedirect)
		case "/round":
			http.Redirect(w, r, "/round", http.StatusTemporaryRedirect)
		}
	})
	_, _, err := call(t, url+"/moved")
	require.NoError(t, err)
	require.Equal(t, []string{`POST /moved {"say":"hello"} Bearer ` + token, `POST /there {"say":"hello"} Bearer ` + token}, got)
	for path, times := range map[string]int{"/get": 1, "/other": 1, "/round": 6} {
		got = nil
		_, _, err = call(t, url+path)
		require.Equal(t, provider.Refused, failed(t, err).Kind, path)
		require.Len(t, got, times, path)
	}
}

func TestAnErrorIsForPeople(t *testing.T) {
	require.EqualError(t, &provider.Error{Kind: provider.Denied, Reason: "it does not"}, "it does not")
}
