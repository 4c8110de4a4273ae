package outbox

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/push"
)

func get(t *testing.T, o *Outbox, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	o.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	h := w.Header()
	require.Equal(t, policy, h.Get("Content-Security-Policy"))
	require.Equal(t, "nosniff", h.Get("X-Content-Type-Options"))
	require.Equal(t, "same-origin", h.Get("Cross-Origin-Resource-Policy"))
	require.Equal(t, "no-store", h.Get("Cache-Control"))
	return w
}

func TestAnEmptyOutboxSaysWhatWillBeThere(t *testing.T) {
	w := get(t, opened(t, t.TempDir(), 0), Path)
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, "text/html; charset=utf-8", w.Header().Get("Content-Type"))
	require.Contains(t, w.Body.String(), "Nothing was sent yet. What agents, workflows and integrations send to people by e-mail")
	require.NotContains(t, w.Body.String(), "<table>")
}

func TestThePageHasNoScriptAndNothingFromElsewhere(t *testing.T) {
	require.NotContains(t, policy, "unsafe")
	require.NotContains(t, policy, "script")
	require.NotRegexp(t, `(?i)<script|<style|\sstyle=|\son\w+=|javascript:|https?://|url\(`, pageText)
}

func TestWhatWasSentIsTextOnThePage(t *testing.T) {
	o := opened(t, t.TempDir(), 0)
	const evil = `<script>alert(1)</script> "Grüße" & 'x'`
	send(t, o, evil)
	notify(t, o, push.Notification{Title: evil, Body: evil})
	send(t, o, "")
	body := get(t, o, Path).Body.String()
	require.NotContains(t, body, "<script")
	require.Equal(t, 2, strings.Count(body, "&lt;script&gt;alert(1)&lt;/script&gt; &#34;Grüße&#34; &amp; &#39;x&#39;</a>"))
	require.Contains(t, body, ">(none)</a>")
	require.Less(t, strings.Index(body, "(none)"), strings.Index(body, "<td>push</td>"), "newest first")

	links := regexp.MustCompile(`href="(/local/outbox/[^"]+)"`).FindAllStringSubmatch(body, -1)
	require.Len(t, links, 3)
	for i, want := range []string{"Subject: \r\n", `"title": "<script`, "Subject: =?utf-8?B?"} {
		w := get(t, o, links[i][1])
		require.Equal(t, http.StatusOK, w.Code)
		require.Equal(t, "text/plain; charset=utf-8", w.Header().Get("Content-Type"))
		require.Contains(t, w.Body.String(), want)
	}
}

func TestPagesOfThePage(t *testing.T) {
	o := opened(t, t.TempDir(), 0)
	const sent = 2*perPage + 3
	for range sent {
		send(t, o, "s")
	}
	seen := map[string]bool{}
	path := Path
	for _, want := range []int{perPage, perPage, 3} {
		body := get(t, o, path).Body.String()
		links := regexp.MustCompile(`href="/local/outbox/([^"]+)"`).FindAllStringSubmatch(body, -1)
		require.Len(t, links, want)
		for _, link := range links {
			seen[link[1]] = true
		}
		require.Equal(t, path != Path, strings.Contains(body, ">Newest</a>"))
		older := regexp.MustCompile(`href="(/local/outbox\?before=[^"]+)">Older<`).FindStringSubmatch(body)
		require.Equal(t, want == perPage, older != nil)
		if older != nil {
			path = older[1]
		}
	}
	require.Len(t, seen, sent)
	require.Contains(t, get(t, o, Path+"?before=20000101T000000.000000Z").Body.String(), "There is nothing older.")
}

func TestWhatIsNotThere(t *testing.T) {
	o := opened(t, t.TempDir(), 0)
	for path, status := range map[string]int{"/20000101T000000.000000Z": 404, "/x": 404, "/..%2fsecrets.env": 404, "/%3Cscript%3E": 404, "/devices": 404, "/x/y": 404, "?before=x": 400, "?before=%3Cscript%3E": 400} {
		w := get(t, o, Path+path)
		require.Equal(t, status, w.Code, path)
		require.Equal(t, "text/plain; charset=utf-8", w.Header().Get("Content-Type"))
		require.NotContains(t, w.Body.String(), "script")
	}
}
