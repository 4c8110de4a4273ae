package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/bedrockagentcore"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/agentcore"
	hosted "github.com/agentplatform/agentplatform/pkg/cloud/agentcore"
	"github.com/agentplatform/agentplatform/pkg/thread"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

const (
	tick = time.Millisecond // of looking again
	arn  = "arn:aws:bedrock-agentcore:us-east-1:123456789012:runtime/agentplatform_test-a1b2c3d4e5"
)

// front is AgentCore before a runtime: it passes body, session and stream through.
type front struct {
	server  *httptest.Server
	session string
	query   url.Values
	signed  string
}

func newFront(t *testing.T, runtime string) *front {
	to, err := url.Parse(runtime)
	require.NoError(t, err)
	f := &front{}
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.URL.Path, r.Out.URL.RawPath, r.Out.URL.RawQuery = "/invocations", "", ""
	}}
	f.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/runtimes/"+arn+"/invocations" {
			http.Error(w, `{"message":"no such runtime"}`, http.StatusNotFound)
			return
		}
		f.session, f.query, f.signed = r.Header.Get(agentcore.SessionHeader), r.URL.Query(), r.Header.Get("Authorization")
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(f.server.Close)
	return f
}

func (f *front) adapter() hosted.Runtime { return adapterAt(f.server.URL) }

func adapterAt(url string) hosted.Runtime {
	client := bedrockagentcore.New(bedrockagentcore.Options{Region: "us-east-1", BaseEndpoint: &url,
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", "")})
	return hosted.Runtime{Client: client, Target: agentcore.Target{ARN: arn, Qualifier: "blue"}}
}

// What a dispatcher may count on, whatever is between it and the runtime.
func TestBothAdaptersKeepTheContract(t *testing.T) {
	w := newWorld(t)
	p := start(t, append(w.environment(), "MAX_TURNS=1"))
	f := newFront(t, p.url)
	for name, to := range map[string]agentcore.Runtime{"http": agentcore.HTTP{URL: p.url}, "aws": f.adapter()} {
		t.Run(name, func(t *testing.T) {
			require.Eventually(t, func() bool { return p.status(t) == "Healthy" }, patience, tick)
			w.calls.Store(0)
			w.gated.Store(1)
			w.open = make(chan struct{})
			th, id := w.ask("/say Good morning to you.")
			require.NoError(t, to.Start(t.Context(), th.UUID, w.dispatch(id)), "accepted while the model still answers")
			w.wait()
			require.Equal(t, turn.Running, w.turn(id).Status)
			require.NoError(t, to.Start(t.Context(), th.UUID, w.dispatch(id)), "somebody has it: nothing to do")

			other, waiting := w.ask("Hello")
			var refused *agentcore.Refused
			require.ErrorAs(t, to.Start(t.Context(), other.UUID, w.dispatch(waiting)), &refused)
			require.Equal(t, agentcore.Busy, refused.Reason)
			require.Equal(t, turn.Queued, w.turn(waiting).Status)

			close(w.open)
			require.Eventually(t, func() bool { return w.turn(id).Status == turn.Succeeded }, patience, tick)
			require.NoError(t, to.Start(t.Context(), th.UUID, w.dispatch(id)), "it has ended: nothing to do")
			require.Error(t, to.Start(t.Context(), th.UUID, []byte(`{"tenantId":"acme"}`)))
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			require.ErrorIs(t, to.Start(ctx, other.UUID, w.dispatch(waiting)), context.Canceled)
		})
	}
	require.Len(t, f.session, 36)
	require.Equal(t, "blue", f.query.Get("qualifier"))
	require.Contains(t, f.signed, "/us-east-1/bedrock-agentcore/aws4_request")
}

// An error of the service is told with its request id.
func TestTheServiceThrottles(t *testing.T) {
	for _, c := range []struct {
		status int
		code   string
	}{{429, "ThrottlingException"}, {403, "AccessDeniedException"}, {424, "RuntimeClientError"}} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Amzn-Requestid", "11111111-2222-3333-4444-555555555555")
			w.Header().Set("X-Amzn-Errortype", c.code)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(c.status)
			_, _ = w.Write([]byte(`{"message":"no"}`))
		}))
		to := adapterAt(server.URL)
		options := to.Client.Options()
		options.Retryer = aws.NopRetryer{}
		to.Client = bedrockagentcore.New(options)
		err := to.Start(t.Context(), strings.Repeat("s", 36), []byte(`{}`))
		require.ErrorContains(t, err, "11111111-2222-3333-4444-555555555555")
		require.ErrorContains(t, err, c.code)
		server.Close()
	}
}

// A stream that ends before it said anything is an error: the turn may not have been taken.
func TestTheAnswerBreaksOff(t *testing.T) {
	for _, stream := range []string{"", "event: accepted\n", "event: progress\ndata: {}\n\n", "event: refused\ndata: {\n\n", "\n\n"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write([]byte(stream))
		}))
		for _, to := range []agentcore.Runtime{agentcore.HTTP{URL: server.URL}, adapterAt(server.URL)} {
			require.Error(t, to.Start(t.Context(), strings.Repeat("s", 36), []byte(`{}`)), "%q", stream)
		}
		server.Close()
	}
}

// status is what the process answers to a ping.
func (p *process) status(t *testing.T) string {
	t.Helper()
	response, err := http.Get(p.url + "/ping")
	require.NoError(t, err)
	defer response.Body.Close()
	var answer struct{ Status string }
	require.NoError(t, json.NewDecoder(response.Body).Decode(&answer))
	return answer.Status
}

// more is a further message in the thread; it gives the turn that is to answer.
func (w *world) more(th thread.Thread, body string) (turnID string) {
	w.t.Helper()
	require.NoError(w.t, w.db.App.InTenant(w.t.Context(), w.TenantID, func(tx pgx.Tx) error {
		asked, err := turn.Request(w.t.Context(), tx, w.TenantID, turn.Ask{ThreadID: th.ID, Body: body, OnBusy: turn.Enqueue, UserID: w.UserID})
		turnID = asked.TurnID
		return err
	}))
	return turnID
}
