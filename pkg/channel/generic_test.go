package channel_test

import (
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/channel"
	"github.com/agentplatform/agentplatform/pkg/provider"
	"github.com/agentplatform/agentplatform/pkg/thread"
)

func readGeneric(t testing.TB, body string, headers ...string) (channel.Event, error) {
	t.Helper()
	e, err := of(t, "generic").Read(inbound([]byte(body), append([]string{"X-Delivery-Id", "d-1", "X-Signature-Timestamp", "1700000000"}, headers...)...), channel.Config{})
	sound(t, e, err)
	return e, err
}

func TestGenericRead(t *testing.T) {
	e, err := readGeneric(t, `{"conversation":"order/4711","message":"Where is it?","id":"m-1","title":"Order 4711","sender":{"id":"c-1","name":"Ada"},"metadata":{"order":4711}}`)
	require.NoError(t, err)
	require.Equal(t, channel.Event{ID: "d-1", Kind: "message", Said: &channel.Said{Key: "order/4711", MessageKey: "order%2F4711/m-1", Opens: true, Title: new("Order 4711"), Body: "Where is it?",
		Sender: channel.Sender{ID: "c-1", Name: "Ada"}, Address: json.RawMessage(`{"conversation":"order/4711"}`), Metadata: map[string]any{"generic": map[string]any{"order": 4711.0}}}}, e)

	long, err := readGeneric(t, `{"conversation":"1","message":"`+strings.Repeat("x", thread.MaxBody+1)+`"}`)
	require.NoError(t, err)
	require.Len(t, long.Said.Body, thread.MaxBody)
}

// Nothing but time and body is signed: who sends them again under another id has said nothing new.
func TestGenericReadAMessageThatComesTwice(t *testing.T) {
	key := func(body string, headers ...string) string {
		e, err := readGeneric(t, body, headers...)
		require.NoError(t, err)
		return e.Said.MessageKey
	}
	const plain, named = `{"conversation":"1","message":"Hello"}`, `{"conversation":"1","message":"Hello","id":"m"}`
	require.Equal(t, key(plain), key(plain, "X-Delivery-Id", "d-2"))
	require.NotEqual(t, key(plain), key(plain, "X-Signature-Timestamp", "1700000001"), "said again")
	require.NotEqual(t, key(plain), key(plain+" "))
	require.Equal(t, key(named), key(named+" ", "X-Signature-Timestamp", "1700000001"), "sent again")
	require.NotEqual(t, key(named), key(`{"conversation":"2","message":"Hello","id":"m"}`))
	require.NotEqual(t, key(`{"conversation":"a/b","message":"Hello","id":"c"}`), key(`{"conversation":"a","message":"Hello","id":"b/c"}`))
}

func TestGenericReadWhatCannotBeUnderstood(t *testing.T) {
	long := strings.Repeat("x", 201)
	for body, says := range map[string]string{
		``:                                 "not a JSON object",
		`[]`:                               "not a JSON object",
		`{}`:                               "the body has no ",
		`{"message":"x"}`:                  "no conversation",
		`{"conversation":"1"}`:             "no message",
		`{"conversation":"1","message":1}`: "not a JSON object",
		`{"conversation":"1","message":" \u0000"}`:                                                  "no message",
		`{"conversation":"` + long + `","message":"x"}`:                                             "conversation is longer",
		`{"conversation":"1","message":"x","thread_id":"AUTO-1"}`:                                   "it is an answer",
		`{"conversation":"1","message":"x","thread_id":0}`:                                          "it is an answer",
		`{"conversation":"1\u0000","message":"x"}`:                                                  "conversation must be UTF-8",
		`{"conversation":"1","message":"x","id":"` + long + `"}`:                                    "id is longer",
		`{"conversation":"1","message":"x","sender":{"name":"` + long + `"}}`:                       "sender.name is longer",
		`{"conversation":"1","message":"x","title":"` + long + long + long + `"}`:                   "title is longer",
		`{"conversation":"1","message":"x","metadata":{"a":"\u0000"}}`:                              "NUL",
		`{"conversation":"1","message":"x","metadata":{"a":1e999}}`:                                 "not a JSON object",
		`{"conversation":"1","message":"x","metadata":{"a":"` + strings.Repeat("x", 64<<10) + `"}}`: "metadata is longer",
	} {
		_, err := readGeneric(t, body)
		invalid(t, err, says)
	}
	for _, id := range []string{"", long, "a\x00"} {
		_, err := readGeneric(t, `{"conversation":"1","message":"x"}`, "X-Delivery-Id", id)
		invalid(t, err, "X-Delivery-Id")
	}
}

// An answer is signed with the secret of what comes in, and as nothing that comes in is: nobody who sees one can have it taken in.
func TestGenericPost(t *testing.T) {
	const secret = "a secret of some length"
	status := http.StatusNoContent
	var got []map[string]any
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := readAll(r)
		at := r.Header.Get("X-Signature-Timestamp")
		require.Equal(t, "sha256="+mac(sha256.New, secret, "reply."+at+"."+string(body)), r.Header.Get("X-Signature-256"))
		for _, given := range []string{at, "reply." + at} {
			r.Header.Set("X-Signature-Timestamp", given)
			require.Equal(t, channel.ErrUnverified, of(t, "generic").Verify(channel.Inbound{Header: r.Header.Get, Body: body, Now: time.Now()}, secret))
		}
		require.Equal(t, "application/json", r.Header.Get("Content-Type"))
		var said map[string]any
		require.NoError(t, json.Unmarshal(body, &said))
		require.Equal(t, said["id"], r.Header.Get("X-Delivery-Id"))
		got = append(got, said)
		w.Header().Set("Retry-After", "5")
		w.WriteHeader(status)
	}))
	defer server.Close()
	o := channel.Outside{Client: client(t), Config: channel.Config{ReplyURL: server.URL + "/replies"}, Secrets: channel.Secrets{Signing: secret}}
	to := json.RawMessage(`{"conversation":"order/4711"}`)
	post := func() (string, error) {
		return of(t, "generic").Post(t.Context(), o, to, channel.Reply{ID: "r-1", ThreadID: "AUTO-1", Body: "It is on its way.", Failed: true})
	}
	id, err := post()
	require.NoError(t, err)
	require.Equal(t, "r-1", id)
	require.Equal(t, []map[string]any{{"id": "r-1", "conversation": "order/4711", "thread_id": "AUTO-1", "message": "It is on its way.", "failed": true}}, got)

	// What may have arrived is not looked for: it is posted again under its id.
	_, found, err := of(t, "generic").Find(t.Context(), o, to, "r-1", now)
	require.NoError(t, err)
	require.False(t, found)

	for code, kind := range map[int]provider.Kind{500: provider.Unknown, 503: provider.Away, 429: provider.Limited, 401: provider.Denied, 404: provider.Missing, 400: provider.Refused, 302: provider.Refused} {
		status = code
		_, err := post()
		fails(t, err, kind, "HTTP status")
	}
	sent := len(got)
	to = json.RawMessage(`{}`)
	_, err = post()
	fails(t, err, provider.Refused, "address")
	o.Config.ReplyURL = ""
	id, err = post()
	require.NoError(t, err, "nobody wants it")
	require.Empty(t, id)
	require.Len(t, got, sent)
}

func FuzzGenericRead(f *testing.F) {
	f.Add([]byte(`{"conversation":"order/4711","message":"Where is it?","id":"m-1","title":"Order","sender":{"id":"c","name":"Ada"},"metadata":{"order":{"a":[1,"\u2028"]}}}`), "d-1")
	f.Add([]byte(`{"conversation":"1","message":"Hello","metadata":null,"title":null}`), "d\x00")
	f.Add([]byte(`{"conversation":"<","message":"\ud800","metadata":{"<":"\ud800"}}`), "d")
	f.Fuzz(func(t *testing.T, body []byte, id string) {
		in := channel.Inbound{Header: func(name string) string {
			return map[string]string{"X-Delivery-Id": id, "X-Signature-Timestamp": id}[name]
		}, Body: body, Now: now}
		e, err := of(t, "generic").Read(in, channel.Config{})
		sound(t, e, err)
		if err == nil {
			require.NotNil(t, e.Said)
			require.NotEmpty(t, e.Said.MessageKey)
		}
	})
}
