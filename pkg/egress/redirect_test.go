package egress_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/egress"
)

// hop is a server that sends /to?<URL> there with the status that the path ends in, and remembers the headers that it saw.
type hop struct {
	url  string
	mu   sync.Mutex
	seen []http.Header
}

func newHop(t *testing.T) *hop {
	h := &hop{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		h.seen = append(h.seen, r.Header.Clone())
		h.mu.Unlock()
		if to := r.URL.Query().Get("to"); to != "" {
			status, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
			w.Header().Set("Location", to)
			w.WriteHeader(status)
			return
		}
		fmt.Fprint(w, "arrived")
	}))
	t.Cleanup(server.Close)
	h.url = server.URL
	return h
}

// to is a URL that leads to another one.
func (h *hop) to(status int, url_ string) string {
	return fmt.Sprintf("%s/%d?to=%s", h.url, status, url.QueryEscape(url_))
}

func (h *hop) last(t *testing.T) http.Header {
	h.mu.Lock()
	defer h.mu.Unlock()
	require.NotEmpty(t, h.seen)
	return h.seen[len(h.seen)-1]
}

func TestRedirectsAreCheckedAsRequestsAre(t *testing.T) {
	h := newHop(t)
	c := egress.New(egress.Config{Loopback: true})
	for _, to := range []string{"http://169.254.169.254/latest/meta-data/", "https://169.254.169.254/", "https://10.0.0.1/", "https://[fd00:ec2::254]/", "https://[::ffff:127.0.0.1]/", "//192.168.0.1/"} {
		_, err := get(t, c, h.to(302, to))
		refused(t, err, private)
		_, err = get(t, c, h.to(307, h.to(301, to)))
		refused(t, err, private)
	}
	_, err := get(t, c, h.to(302, "https://user:word@example.com/"))
	refused(t, err, "the URL has a user name or a password in it")
	for _, to := range []string{"file:///etc/passwd", "ftp://example.com", "javascript:alert(1)"} {
		_, err = get(t, c, h.to(302, to))
		require.Error(t, err, to)
	}
	four := h.url
	for range 5 {
		four = h.to(302, four)
	}
	body, err := get(t, c, four)
	require.NoError(t, err)
	require.Equal(t, "arrived", body)
	_, err = get(t, c, h.to(302, four))
	refused(t, err, "more than 5 redirects")
}

func TestCredentialsStayAtTheirOrigin(t *testing.T) {
	a, b := newHop(t), newHop(t)
	c := egress.New(egress.Config{Loopback: true})
	defer c.CloseIdleConnections()
	ask := func(method, to, body string) error {
		r, err := http.NewRequestWithContext(t.Context(), method, to, strings.NewReader(body))
		require.NoError(t, err)
		for _, name := range []string{"Authorization", "X-Api-Key", "Cookie", "Mcp-Session-Id"} {
			r.Header.Set(name, "secret")
		}
		r.Header.Set("Accept", "text/plain")
		_, err = do(c, r)
		return err
	}
	for _, status := range []int{301, 302, 303, 307, 308} {
		require.NoError(t, ask(http.MethodGet, a.to(status, a.url), ""))
		require.Equal(t, "secret", a.last(t).Get("X-Api-Key"), "the same origin")
		require.Empty(t, a.last(t).Get("Referer"))

		require.NoError(t, ask(http.MethodGet, a.to(status, b.url), ""))
		require.NotContains(t, fmt.Sprint(b.last(t)), "secret")
		require.Equal(t, "text/plain", b.last(t).Get("Accept"))
		require.Empty(t, b.last(t).Get("Referer"), "it has the URL before in it")

		require.NoError(t, ask(http.MethodGet, a.to(status, b.to(status, a.url)), ""))
		require.NotContains(t, fmt.Sprint(a.last(t)), "secret", "b chose the URL")
	}
	for _, status := range []int{307, 308} {
		refused(t, ask(http.MethodPost, a.to(status, b.url), "client_secret=x"), "a redirect to another origin is followed by GET and HEAD only")
		require.NoError(t, ask(http.MethodPost, a.to(status, a.url), "client_secret=x"))
	}
}

func TestSameOrigin(t *testing.T) {
	parse := func(s string) *url.URL {
		u, err := url.Parse(s)
		require.NoError(t, err)
		return u
	}
	for pair, same := range map[[2]string]bool{
		{"https://a.test/x", "https://A.test:443/y?z"}:      true,
		{"http://a.test", "http://a.test:80"}:               true,
		{"https://[::1]:1", "https://[::1]:1/"}:             true,
		{"https://a.test", "http://a.test"}:                 false,
		{"https://a.test", "https://b.a.test"}:              false,
		{"https://a.test", "https://a.test:8443"}:           false,
		{"https://a.test:443", "http://a.test:443"}:         false,
		{"https://a.test.evil.test/", "https://a.test/"}:    false,
		{"https://a.test@evil.test/", "https://a.test/x/y"}: false,
	} {
		require.Equal(t, same, egress.SameOrigin(parse(pair[0]), parse(pair[1])), pair)
	}
}
