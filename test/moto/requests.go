package moto

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Requests stands before a server and keeps what is asked of it, in services that speak JSON with X-Amz-Target: the proof of what moto does not look at.
type Requests struct {
	URL string // where to send them

	mu     sync.Mutex
	bodies map[string][]map[string]any
}

// Record stands before the server at endpoint until the test ends.
func Record(t testing.TB, endpoint string) *Requests {
	t.Helper()
	to, err := url.Parse(endpoint)
	require.NoError(t, err)
	r, proxy := &Requests{bodies: map[string][]map[string]any{}}, httputil.NewSingleHostReverseProxy(to)
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { // a caller who went away: nothing for the log
		w.WriteHeader(http.StatusBadGateway)
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		text, err := io.ReadAll(req.Body)
		if err != nil {
			return // the caller went away
		}
		req.Body = io.NopCloser(bytes.NewReader(text))
		var body map[string]any
		if json.Unmarshal(text, &body) == nil {
			target := req.Header.Get("X-Amz-Target")
			r.mu.Lock()
			r.bodies[target] = append(r.bodies[target], body)
			r.mu.Unlock()
		}
		proxy.ServeHTTP(w, req)
	}))
	t.Cleanup(srv.Close)
	r.URL = srv.URL
	return r
}

// Of is the bodies of an operation, named as X-Amz-Target names it (TrentService.Sign), in the order of their coming.
func (r *Requests) Of(target string) []map[string]any {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.bodies[target])
}
