package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// rawCall is what Go's client would not send.
type rawCall struct {
	name   string
	path   string // of POST; default the webhook's
	head   string // lines, besides the usual ones
	body   string
	ends   bool // the client sends no more, and says so
	status int
}

// head is the first lines of a call; the caller ends them.
func head(path string, lines ...string) string {
	return "POST " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nConnection: close\r\n" + strings.Join(lines, "")
}

// bearer is the line with the webhook's token.
func (w *webhook) bearer() string { return "Authorization: Bearer " + w.token + "\r\n" }

// connect is a connection to the plain port.
func (p *platform) connect(t testing.TB) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.Outputs.APIURL, "http://"))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(waitTime)))
	return conn.(*net.TCPConn)
}

// rawCalls sends bytes as they are; it gives how many calls were good.
func rawCalls(t *testing.T, w *webhook) (good int) {
	own := "/webhooks/" + w.id
	length := fmt.Sprintf("Content-Length: %d\r\n", len(goodCall))
	chunk := fmt.Sprintf("%x\r\n%s\r\n", len(goodCall), goodCall)
	const chunked, end = "Transfer-Encoding: chunked\r\n", "0\r\n\r\n"
	const bad, gone, unknown, taken = http.StatusBadRequest, http.StatusNotFound, http.StatusUnauthorized, http.StatusAccepted
	cases := []rawCall{
		{name: "in chunks", head: chunked, body: chunk + end, status: taken},
		{name: "in chunks of a byte", head: chunked, body: "1\r\n" + strings.Join(strings.Split(goodCall, ""), "\r\n1\r\n") + "\r\n" + end, status: taken},
		{name: "a chunk without a length", head: chunked, body: "zz\r\n" + goodCall + "\r\n" + end, status: bad},
		{name: "a chunk longer than said", head: chunked, body: "5\r\n" + goodCall + "\r\n" + end, status: bad},
		{name: "a chunk of a negative length", head: chunked, body: "-1\r\n" + goodCall + "\r\n" + end, status: bad},
		{name: "a chunk of a length without end", head: chunked, body: strings.Repeat("f", 40) + "\r\n" + goodCall + "\r\n" + end, status: bad},
		{name: "no last chunk", head: chunked, body: chunk, ends: true, status: bad},
		{name: "chunks of nothing", head: chunked, body: end, status: bad},
		{name: "chunks without end", head: chunked, body: fmt.Sprintf("%x\r\n", 8<<20) + strings.Repeat(" ", 7<<20), status: http.StatusRequestEntityTooLarge},
		{name: "another transfer encoding", head: "Transfer-Encoding: gzip\r\n", body: goodCall, status: http.StatusNotImplemented},
		{name: "less than its length", head: "Content-Length: 1000\r\n", body: goodCall, ends: true, status: bad},
		{name: "a number beyond all", head: "Content-Length: 37\r\n", body: `{"message":"/say ok","x":[1e9999999]}`, status: taken},
		{name: "two lengths", head: length + "Content-Length: 3\r\n", body: goodCall, status: bad},
		{name: "a negative length", head: "Content-Length: -1\r\n", body: goodCall, status: bad},
		{name: "a length that is no number", head: "Content-Length: many\r\n", body: goodCall, status: bad},
		{name: "an expectation", head: length + "Expect: 200-ok\r\n", body: goodCall, status: http.StatusExpectationFailed},
		{name: "CR in the key", head: length + "Idempotency-Key: a\rX-Injected: 1\r\n", body: goodCall, status: bad},
		{name: "NUL in the key", head: length + "Idempotency-Key: a\x00X-Injected\r\n", body: goodCall, status: bad},
		{name: "a folded key", head: length + "Idempotency-Key: a\r\n X-Injected: 1\r\n", body: goodCall, status: bad},
		{name: "a key beyond UTF-8", head: length + "Idempotency-Key: a\xffX-Injected\r\n", body: goodCall, status: bad},
		{name: "CR LF in an empty key", head: length + "Idempotency-Key: \r\nX-Injected: 1\r\n", body: goodCall, status: taken},
		{name: "two tokens, both right", head: length + w.bearer(), body: goodCall, status: unknown},
		{name: "two tokens, one right", head: length + "Authorization: Bearer wrong\r\n", body: goodCall, status: unknown},
		{name: "heads too long", head: length + "X-Long: " + strings.Repeat("x", 200<<10) + "\r\n", body: goodCall, status: http.StatusRequestHeaderFieldsTooLarge},
		{name: "another site", path: "http://attacker.example" + own, head: length, body: goodCall, status: http.StatusMisdirectedRequest},
		{name: "CR LF in the query", path: own + "?x=%0d%0aX-Injected:%201", head: length, body: goodCall, status: taken},
	}
	for id, status := range map[string]int{
		"%0d%0aX-Injected:%201": unknown, w.id + "%0d%0aX-Injected:%201": unknown, "%0aX-Injected:%201": unknown, w.id + "%00": unknown, "%00": unknown, "%ff": unknown,
		"%2e%2e": unknown, "%2e%2e%2fapi%2fwebhooks": unknown, w.id + "%2fruns": unknown, w.id + "%20": unknown, w.id + ";x": unknown, w.id + ".": unknown, "*": unknown,
		`'%20or%201=1--`: unknown, "{" + w.id + "}": unknown, strings.ReplaceAll(w.id, "-", ""): unknown, strings.Repeat("x", 5000): unknown,
		"": gone, w.id + "/": gone, w.id + "/runs": gone, "a/b": gone, w.id + "/runs/" + w.id + "/x": gone, "%zz": bad, "%": bad,
		"..": http.StatusTemporaryRedirect, "../%0d%0aX-Injected:%201": http.StatusTemporaryRedirect, "../api/webhooks": http.StatusTemporaryRedirect,
		"/" + w.id: http.StatusTemporaryRedirect, strings.Repeat("x", 100<<10): http.StatusRequestHeaderFieldsTooLarge,
	} {
		cases = append(cases, rawCall{name: "the id " + id[:min(len(id), 60)], path: "/webhooks/" + id, head: length, body: goodCall, status: status})
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.path == "" {
				c.path = own
			}
			conn := w.connect(t)
			sent := make(chan struct{})
			go func() { // the platform may answer before it has read everything
				defer close(sent)
				if _, err := io.WriteString(conn, head(c.path, w.bearer(), c.head, "\r\n")+c.body); err == nil && c.ends {
					_ = conn.CloseWrite()
				}
			}()
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			require.NoError(t, err)
			body, err := io.ReadAll(res.Body)
			require.NoError(t, err)
			conn.Close()
			<-sent
			require.Equal(t, c.status, res.StatusCode, "%s", body)
			for name, values := range res.Header {
				require.NotContains(t, name, "Injected")
				for _, v := range values {
					require.NotContains(t, v, "\n")
				}
			}
			requireNoLeak(t, string(body))
			if c.status == taken {
				good++
			}
		})
	}
	t.Run("a token's word in other letters", func(t *testing.T) {
		for _, word := range []string{"bearer ", "BEARER ", "Bearer   "} {
			w.started(t, goodCall, "Authorization: "+word+w.token)
			good++
		}
		for _, other := range []string{w.token, "Basic " + w.token, "Bearer", "Bearer " + w.token + " x", "Bearer\t" + w.token, "Bearer " + w.tokens.IdToken, "Bearer " + strings.ToLower(w.token)} {
			a, err := w.call(t, goodCall, "Authorization: "+other)
			require.NoError(t, err)
			require.Equal(t, http.StatusUnauthorized, a.status, other)
			require.Equal(t, "Bearer", a.header.Get("Www-Authenticate"))
		}
	})
	return good
}

// slowCalls are clients that send a little and then nothing, until they go away. Others are served meanwhile.
func slowCalls(t *testing.T, w *webhook) (good int) {
	var slow []*net.TCPConn
	for i := range 20 {
		conn, begun := w.connect(t), "P"
		if i%4 != 0 {
			begun = head("/webhooks/"+w.id, w.bearer(), "Content-Length: 1000\r\n\r\n") + "{"
		}
		_, err := io.WriteString(conn, begun)
		require.NoError(t, err)
		slow = append(slow, conn)
	}
	for range 5 {
		w.started(t, goodCall)
		good++
	}
	for i, conn := range slow {
		require.NoError(t, conn.CloseWrite()) // to the platform, the end
		answer, err := io.ReadAll(conn)       // until it has closed the connection too
		require.NoError(t, err)
		if i%4 != 0 {
			require.Regexp(t, `^HTTP/1\.1 400 `, string(answer))
		}
	}
	return good
}

// wrongTokens are 3,000 calls with wrong tokens, and right ones in between.
func wrongTokens(t *testing.T, w *webhook) (good int) {
	const calls, clients = 3000, 16
	wrong := []string{"", "wrong", w.token[:31], w.token + "x", w.token[:31] + string(w.token[31]^1), strings.Repeat("0", 32), strings.Repeat("x", 10_000), w.tokens.IdToken}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}, Timeout: waitTime}
	defer client.CloseIdleConnections()
	var next atomic.Int64
	var all sync.WaitGroup
	errs := make(chan error, clients)
	for range clients {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < calls; i = int(next.Add(1)) - 1 {
				id := w.id
				if i%5 == 0 {
					id = fmt.Sprintf("01900000-0000-7000-8000-%012d", i) // of nothing
				}
				a, err := w.restWith(t, client, http.MethodPost, "/webhooks/"+id, wrong[i%len(wrong)], goodCall)
				if err == nil && a.problem() != "401 Unauthorized no webhook has this id and token" {
					err = fmt.Errorf("%s %q: %s", id, wrong[i%len(wrong)], a.body)
				}
				if err != nil {
					errs <- err
					return
				}
			}
		})
	}
	for next.Load() < calls {
		w.started(t, goodCall)
		good++
	}
	all.Wait()
	close(errs)
	require.NoError(t, <-errs)
	t.Logf("%d right calls among %d wrong ones", good, calls)
	return good
}

// goroutines ends the platform and gives what its goroutines were doing.
func (p *platform) goroutines(t testing.TB) []string {
	t.Helper()
	require.NoError(t, syscall.Kill(p.cmd.Process.Pid, syscall.SIGQUIT))
	require.Equal(t, 2, p.exit())
	_, dump, found := strings.Cut(p.stderr.String(), "SIGQUIT: quit")
	require.True(t, found)
	all := strings.Split(dump, "\n\n")
	require.Contains(t, strings.Join(all, ""), "cmd/local/main.go", "the dump is whole")
	return all
}
