package e2e

import (
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/local/outbox"
	"github.com/agentplatform/agentplatform/pkg/mail"
	"github.com/agentplatform/agentplatform/pkg/push"
)

// TestOutbox: what was sent is shown, also after a restart: newest first, with a page of its own for the whole text.
func TestOutbox(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	sent, err := outbox.Open(outbox.Config{Dir: filepath.Join(dir, "outbox")})
	require.NoError(t, err)
	id, err := mail.New(sent).Send(t.Context(), mail.Message{From: mail.Address{Name: "Ada", Address: "ada@agents.example.com"}, To: []string{"alice@acme.test"},
		Subject: "Grüße <b>", Text: "Hello", HTML: "<script>alert(1)</script>"})
	require.NoError(t, err)
	pusher := push.New(sent)
	endpoint, err := pusher.Register(t.Context(), push.FCM, "device", "")
	require.NoError(t, err)
	require.NoError(t, pusher.Send(t.Context(), endpoint, push.Notification{Title: "TASK-7 is yours"}))

	p := startOn(t, dir)
	get := func(path string) (*http.Response, string) {
		t.Helper()
		res, err := plainClient.Get(p.Outputs.APIURL + path)
		require.NoError(t, err)
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.Equal(t, "nosniff", res.Header.Get("X-Content-Type-Options"))
		require.Regexp(t, `^default-src 'none'; style-src 'self'; `, res.Header.Get("Content-Security-Policy"))
		return res, string(text)
	}
	res, page := get("/local/outbox")
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.Equal(t, "text/html; charset=utf-8", res.Header.Get("Content-Type"))
	require.Regexp(t, `(?s)<td>push</td><td>`+endpoint+`</td>.*TASK-7 is yours.*<td>e-mail</td><td>alice@acme\.test</td>.*Grüße &lt;b&gt;`, page)
	links := regexp.MustCompile(`href="(/local/outbox/[^"]+)"`).FindAllStringSubmatch(page, -1)
	require.Len(t, links, 2)

	res, text := get(links[1][1])
	require.Equal(t, "text/plain; charset=utf-8", res.Header.Get("Content-Type"))
	require.Contains(t, text, "\r\nMessage-ID: "+id+"\r\n")
	require.Contains(t, text, "<script>", "as it would have been sent")
	_, text = get(links[0][1])
	require.Contains(t, text, `"title": "TASK-7 is yours"`)
	res, _ = get("/local/outbox/20000101T000000.000000Z")
	require.Equal(t, http.StatusNotFound, res.StatusCode)

	style := regexp.MustCompile(`<link rel="stylesheet" href="([^"]+)">`).FindStringSubmatch(page)
	require.NotNil(t, style)
	res, err = plainClient.Get(p.Outputs.APIURL + style[1])
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, http.StatusOK, res.StatusCode)
}
