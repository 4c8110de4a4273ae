package mcp_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/agentplatform/agentplatform/pkg/egress"
	"github.com/agentplatform/agentplatform/pkg/mcp"
	everything "github.com/agentplatform/agentplatform/test/mcp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// over is a client as local mode has it; the test closes its connections.
func over(t *testing.T) *http.Client {
	c := egress.New(egress.Config{Loopback: true, Answer: time.Minute})
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// TestEverything: the MCP project's own server, over both transports, found and named.
func TestEverything(t *testing.T) {
	for name, c := range map[string]struct {
		sse  bool
		asks []mcp.Transport
		says mcp.Transport
	}{
		"streamable HTTP": {false, []mcp.Transport{"", mcp.Auto, mcp.Streamable}, mcp.Streamable},
		"SSE":             {true, []mcp.Transport{mcp.Auto, mcp.SSE}, mcp.SSE},
	} {
		t.Run(name, func(t *testing.T) {
			url := everything.Everything(t, c.sse)
			for _, asks := range c.asks {
				s, err := mcp.Connect(t.Context(), over(t), mcp.Target{URL: url, Transport: asks})
				require.NoError(t, err)
				require.Equal(t, c.says, s.Transport)
				tour(t, s)
				s.Close()
				s.Close()
				_, err = s.Call(t.Context(), "echo", json.RawMessage(`{"message":"late"}`))
				require.EqualError(t, err, "the session is closed")
			}
		})
	}
}

func tour(t *testing.T, s *mcp.Session) {
	tools, left, err := s.Tools(t.Context())
	require.NoError(t, err)
	require.Empty(t, left)
	byName := map[string]mcp.Tool{}
	for _, tool := range tools {
		byName[tool.Name] = tool
	}
	require.NotEmpty(t, byName["echo"].Description)
	require.Contains(t, string(byName["echo"].Schema), `"type":"object"`)
	again, _, err := s.Tools(t.Context())
	require.NoError(t, err)
	require.Equal(t, tools, again, "the same list is the same to the byte")

	call := func(tool, arguments string) mcp.Result {
		t.Helper()
		r, err := s.Call(t.Context(), tool, json.RawMessage(arguments))
		require.NoError(t, err)
		return r
	}
	require.Equal(t, mcp.Result{Text: "Echo: Grüße <b>"}, call("echo", `{"message":"Grüße <b>"}`))
	require.Contains(t, call("get-sum", `{"a":2,"b":40}`).Text, "42")
	require.Contains(t, call("get-tiny-image", ``).Text, "(an image, image/png, ")
	require.NotContains(t, call("get-tiny-image", ``).Text, "iVBOR")
	require.Contains(t, call("get-resource-reference", `{"resourceType":"Text","resourceId":1}`).Text, "(the resource ")
	require.Contains(t, call("get-structured-content", `{"location":"New York"}`).Text, `"temperature"`)
	refused := call("echo", `{"message":7}`)
	require.True(t, refused.Failed)
	require.True(t, strings.Contains(refused.Text, "message"), refused.Text)
	require.True(t, call("no-such-tool", `{}`).Failed)
}
