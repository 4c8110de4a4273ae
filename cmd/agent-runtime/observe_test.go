package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/agentplatform/agentplatform/pkg/agentcore"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// A turn in the container is told of by spans at the collector and by one line of the log, which is CloudWatch's metrics too. Nobody's words are in either.
func TestATurnIsObserved(t *testing.T) {
	var mu sync.Mutex
	var names []string
	var everything strings.Builder
	spans := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		body, _ := io.ReadAll(r.Body)
		everything.Write(body)
		var export collector.ExportTraceServiceRequest
		if err := proto.Unmarshal(body, &export); err != nil {
			t.Error(err)
		}
		for _, resource := range export.GetResourceSpans() {
			for _, scope := range resource.GetScopeSpans() {
				for _, s := range scope.GetSpans() {
					names = append(names, s.GetName())
				}
			}
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	defer spans.Close()

	w := newWorld(t)
	p := start(t, append(w.environment(), "METRICS_NAMESPACE=agentplatform/test", "LOG_LEVEL=debug", "OTEL_EXPORTER_OTLP_ENDPOINT="+spans.URL))
	th, id := w.ask("/say secret words")
	dispatch, err := json.Marshal(turn.Dispatch{TenantID: w.TenantID, TurnID: id, RequestID: "request-1"})
	require.NoError(t, err)
	require.NoError(t, agentcore.HTTP{URL: p.url}.Start(t.Context(), th.UUID, dispatch))
	require.Eventually(t, func() bool { return w.turn(id).Status == turn.Succeeded }, patience, tick)
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	require.Equal(t, 0, p.exit(), p.output())

	require.NotContains(t, everything.String()+p.output(), "secret")
	model := *w.turn(id).Model
	require.ElementsMatch(t, []string{"invoke_agent " + w.AgentID, "perception", "planning", "chat " + model, "action", "feedback"}, names)
	var ended map[string]any
	for line := range strings.Lines(p.output()) {
		var one map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &one), line)
		if one["message"] == "turn ended" {
			require.Nil(t, ended)
			ended = one
		}
	}
	require.Equal(t, []any{w.TenantID, th.ID, id, "request-1", "succeeded"}, []any{ended["tenant_id"], ended["thread_id"], ended["turn_id"], ended["request_id"], ended["status"]})
	metrics := ended["_aws"].(map[string]any)["CloudWatchMetrics"].([]any)
	require.Equal(t, "agentplatform/test", metrics[0].(map[string]any)["Namespace"])
}
