package agentcore_test

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/agentcore"
)

const arn = "arn:aws:bedrock-agentcore:eu-central-1:123456789012:runtime/agentplatform_prod-a1b2c3d4e5"

func TestParse(t *testing.T) {
	targets, err := agentcore.Parse(" default=" + arn + ", blue=" + arn + "/runtime-endpoint/v2 ,near=http://127.0.0.1:8080/, ")
	require.NoError(t, err)
	require.Equal(t, map[string]agentcore.Target{"default": {ARN: arn}, "blue": {ARN: arn, Qualifier: "v2"}, "near": {URL: "http://127.0.0.1:8080"}}, targets)
	none, err := agentcore.Parse("")
	require.NoError(t, err)
	require.Empty(t, none)
	for setting, says := range map[string]string{
		"default":                       `"default" is not selector=target`,
		"=" + arn:                       "is not selector=target",
		"Default=" + arn:                "is not selector=target",
		"a=" + arn + ",a=" + arn:        `names "a" twice`,
		"a=ftp://here":                  "neither the ARN of an agent runtime nor an http(s) URL",
		"a=127.0.0.1:8080":              "neither the ARN",
		"a=http://":                     "neither the ARN",
		"a=arn:aws:lambda:x:1:function": "neither the ARN",
		"a=" + arn + "/other":           "neither the ARN",
	} {
		_, err := agentcore.Parse(setting)
		require.ErrorContains(t, err, says, setting)
	}
}

// What the runtime tells is relayed in order, until the turn's end.
func TestRelay(t *testing.T) {
	var session string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		session = r.Header.Get(agentcore.SessionHeader)
		fmt.Fprint(w, "event: accepted\ndata: {}\n\n: a comment\n\nevent: progress\ndata: {\"a\":1}\n\nevent: other\ndata: {}\n\nevent:progress\ndata:2\n\nevent: released\ndata: {}\n\nevent: progress\ndata: 3\n\n")
	}))
	defer server.Close()
	var got []string
	to := agentcore.HTTP{URL: server.URL, Relay: func(e []byte) { got = append(got, string(bytes.Clone(e))) }}
	require.NoError(t, to.Start(t.Context(), "session", []byte("{}")))
	require.Equal(t, []string{`{"a":1}`, "2"}, got)
	require.Equal(t, "session", session)
}

func TestWhatIsNoEventStream(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "go away", http.StatusTeapot) }))
	defer server.Close()
	require.ErrorContains(t, agentcore.HTTP{URL: server.URL}.Start(t.Context(), "session", nil), "418 I'm a teapot: go away")
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "event: accepted\ndata: "+strings.Repeat("x", 5<<20)+"\n\n")
	})
	require.ErrorContains(t, agentcore.HTTP{URL: server.URL}.Start(t.Context(), "session", nil), "broke off")
}

// A runtime that does not listen yet is waited for, if that was asked.
func TestWait(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	require.ErrorContains(t, agentcore.HTTP{URL: "http://" + address}.Start(t.Context(), "session", nil), "connect")

	ended := make(chan error, 1)
	go func() {
		ended <- agentcore.HTTP{URL: "http://" + address, Wait: time.Minute}.Start(t.Context(), "session", nil)
	}()
	listener, err = net.Listen("tcp", address)
	require.NoError(t, err)
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "event: accepted\ndata: {}\n\n")
	})}}
	server.Start()
	defer server.Close()
	require.NoError(t, <-ended)
}
