package e2e

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"
	"github.com/stretchr/testify/require"
)

// TestBadTransport: what is wrong below GraphQL. The platform answers with the status that HTTP has for it, or hangs up, and goes on.
func TestBadTransport(t *testing.T) {
	t.Parallel()
	p := sharedPlatform(t)
	alice := p.as(t, "alice")
	secure := p.tlsClient(t)
	do := func(client *http.Client, method, url string, header http.Header) *http.Response {
		r, err := http.NewRequest(method, url, nil)
		require.NoError(t, err)
		r.Header = header
		if host := header.Get("Host"); host != "" {
			r.Host = host
		}
		res, err := client.Do(r)
		require.NoError(t, err)
		defer res.Body.Close()
		_, err = io.Copy(io.Discard, io.LimitReader(res.Body, 1<<20))
		require.NoError(t, err)
		return res
	}
	signed := http.Header{"Authorization": {"Bearer " + alice.tokens.IdToken}}
	for url, client := range map[string]*http.Client{p.Outputs.APIURL: plainClient, p.Outputs.AppSyncURL: secure} {
		for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete, http.MethodPatch, "NONSENSE"} {
			require.Equal(t, http.StatusMethodNotAllowed, do(client, method, url+"/graphql?query=%7B__typename%7D", signed).StatusCode, method)
		}
		require.Equal(t, http.StatusNotFound, do(client, http.MethodGet, url+"/nothing", signed).StatusCode)
		require.Equal(t, http.StatusNotFound, do(client, http.MethodGet, url+"/../../etc/passwd", signed).StatusCode)
		require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, do(client, http.MethodPost, url+"/graphql", http.Header{"X-Long": {strings.Repeat("x", 200<<10)}}).StatusCode)
		require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, do(client, http.MethodPost, url+"/graphql", http.Header{"Authorization": {"Bearer " + strings.Repeat("x", 200<<10)}}).StatusCode)
		require.Equal(t, http.StatusMisdirectedRequest, do(client, http.MethodPost, url+"/graphql", http.Header{"Host": {"attacker.example"}}).StatusCode, "another site's name")
	}

	plain := func() net.Conn {
		conn, err := net.Dial("tcp", strings.TrimPrefix(p.Outputs.APIURL, "http://"))
		require.NoError(t, err)
		return conn
	}
	encrypted := func() net.Conn {
		conn, err := tls.Dial("tcp", strings.TrimPrefix(p.Outputs.AppSyncURL, "https://"), secure.Transport.(*http.Transport).TLSClientConfig)
		require.NoError(t, err)
		return conn
	}
	for _, dial := range []func() net.Conn{plain, encrypted} {
		conn := dial()
		_, err := io.WriteString(conn, "\x00\x01\x02 this is not HTTP\r\n\r\n")
		require.NoError(t, err)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusBadRequest, res.StatusCode)
		conn.Close()

		conn = dial() // who promises more than comes
		_, err = fmt.Fprintf(conn, "POST /graphql HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: %s\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{\"query\":", alice.tokens.IdToken)
		require.NoError(t, err)
		require.NoError(t, conn.(interface{ CloseWrite() error }).CloseWrite())
		res, err = http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusBadRequest, res.StatusCode)
		conn.Close()
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.Outputs.AppSyncURL, "https://")) // plain text on the TLS port
	require.NoError(t, err)
	_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
	require.NoError(t, err)
	answer, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.NotContains(t, string(answer), "200 OK")
	conn.Close()
	require.Equal(t, `{"__typename":"Query"}`, string(alice.query(t, `{ __typename }`, nil).Data))
}

// TestBadSubscriptions: each is refused with a typed error on its own operation; the socket stays usable.
func TestBadSubscriptions(t *testing.T) {
	t.Parallel()
	p := sharedPlatform(t)
	alice := p.as(t, "alice")
	own := alice.open(t)
	foreign := p.foreign(t)
	ctx, cancel := context.WithTimeout(t.Context(), waitTime)
	defer cancel()
	conn, err := p.dial(ctx, p.tlsClient(t), alice.tokens.AccessToken)
	require.NoError(t, err)
	defer conn.CloseNow()

	const follow = `subscription ($id: ID!) { onThreadEvent(threadId: $id) { __typename } }`
	for i, c := range []struct{ name, data, want string }{
		{"another tenant's thread", request(follow, vars{"id": foreign}), "NotFound thread not found"},
		{"a thread that does not exist", request(follow, vars{"id": "CHAT-999999"}), "NotFound thread not found"},
		{"no thread's id", request(follow, vars{"id": "a\x00b"}), "NotFound thread not found"},
		{"another tenant's agent", request(`subscription { onAgentActivity(agentId: "01900000-0000-7000-8000-00000000b003") { __typename } }`, nil), "NotFound agent not found"},
		{"no data", "", "ValidationError"},
		{"not JSON", "{", "ValidationError"},
		{"not GraphQL", request("subscription {", nil), "ValidationError"},
		{"a query", request(`{ listThreads { nextToken } }`, nil), "ValidationError"},
		{"a mutation", request(`mutation { createThread(input: {}) { id } }`, nil), "ValidationError"},
		{"an unknown field", request(`subscription { onEverything { __typename } }`, nil), "ValidationError"},
		{"two fields", request(`subscription { a: onThreadEvent(threadId: "CHAT-1") { __typename } b: onThreadEvent(threadId: "CHAT-1") { __typename } }`, nil), "ValidationError"},
		{"a fragment of itself", request(`subscription { onThreadEvent(threadId: "CHAT-1") { ...A } } fragment A on NewMessageEvent { ...A }`, nil), "ValidationError"},
		{"no variable", request(follow, nil), "ValidationError"},
	} {
		err := begin(ctx, conn, fmt.Sprint("bad-", i), alice.tokens.AccessToken, c.data)
		require.ErrorContains(t, err, c.want, c.name)
		requireNoLeak(t, err.Error())
	}
	require.NoError(t, begin(ctx, conn, "good", alice.tokens.AccessToken, request(follow, vars{"id": own})))
	require.ErrorContains(t, begin(ctx, conn, "good", alice.tokens.AccessToken, request(follow, vars{"id": own})), "uplicate")
	alice.send(t, own, "hello")
	_, err = await(ctx, conn, "data")
	require.NoError(t, err)
}

// TestSocketsThatTalkNonsense: the platform closes them, or passes the nonsense over; it hurts nobody else.
func TestSocketsThatTalkNonsense(t *testing.T) {
	t.Parallel()
	p := sharedPlatform(t)
	alice := p.as(t, "alice")
	own := alice.open(t)
	watch := alice.watch(t, own)
	for name, nonsense := range map[string][]byte{
		"not JSON": []byte("nonsense"), "a list": []byte("[]"), "unknown type": []byte(`{"type":"drop"}`), "no type": []byte(`{}`), "not UTF-8": {0xff, 0xfe},
		"a NUL": {0}, "an id of an object": []byte(`{"type":"start","id":{}}`), "a start without payload": []byte(`{"type":"start","id":"1"}`),
		"a stop of nothing": []byte(`{"type":"stop","id":"nothing"}`), "a megabyte": bytes.Repeat([]byte("x"), 1<<20),
		"deep JSON": []byte(`{"type":"start","id":"1","payload":` + strings.Repeat("[", 50_000) + strings.Repeat("]", 50_000) + `}`),
	} {
		for _, kind := range []websocket.MessageType{websocket.MessageText, websocket.MessageBinary} {
			ctx, cancel := context.WithTimeout(t.Context(), waitTime)
			conn, err := p.dial(ctx, p.tlsClient(t), alice.tokens.AccessToken)
			require.NoError(t, err)
			_ = conn.Write(ctx, kind, nonsense) // it may hang up while we still write
			_ = wsjson.Write(ctx, conn, frame{ID: "x", Type: "stop"})
			_, err = await(ctx, conn, "nothing that is sent") // an error message, or the end
			require.Error(t, err, name)
			requireNoLeak(t, err.Error())
			require.NoError(t, ctx.Err(), "%s: neither an answer nor the end", name)
			conn.CloseNow()
			cancel()
		}
	}
	_, _, err := watch.streamed(alice.send(t, own, "still there?"))
	require.NoError(t, err)
}

// TestClientVanishes: whoever watches a turn and goes away in the middle takes nothing with them.
func TestClientVanishes(t *testing.T) {
	t.Parallel()
	p := sharedPlatform(t)
	alice := p.as(t, "alice")
	thread := alice.open(t)
	stays := alice.watch(t, thread)
	var vanishing []*subscription
	for range 5 {
		s, err := alice.subscribe(t, watchDocument, thread)
		require.NoError(t, err)
		vanishing = append(vanishing, s)
	}
	id := alice.send(t, thread, "/slow 80", "/say one two three four five six seven eight nine ten")
	for _, s := range vanishing {
		_, err := s.await(0, func(e event) bool { return e.Typename == "StreamChunkEvent" })
		require.NoError(t, err)
		s.close()
	}
	body, chunks, err := stays.streamed(id)
	require.NoError(t, err)
	require.Equal(t, "one two three four five six seven eight nine ten", body)
	require.Greater(t, len(chunks), 1)
	require.Equal(t, "succeeded", alice.ended(t, id).Status)
	list := alice.messages(t, thread)
	require.Len(t, list, 2)
	require.Equal(t, "assistant", list[1].Role)
}
