package metrics_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/local/metrics"
	"github.com/agentplatform/agentplatform/pkg/metric"
)

// Events add up on the page, by their dimension; Prometheus finds nothing wrong with it.
func TestThePageAddsUp(t *testing.T) {
	p := metrics.New()
	for _, status := range []string{"succeeded", "succeeded", "failed"} {
		p.Take(metric.Event{Line: "turn ended", Sets: []metric.Set{
			{By: "status", Value: status, Figures: []metric.Figure{metric.Of("turns", 1), {Name: "turn.duration", Unit: metric.Milliseconds, Value: 20}}},
			{By: "model", Value: "m", Figures: []metric.Figure{metric.Of("tokens.input", 10), {Name: "cost", Unit: metric.None, Value: 0.25}}},
			{Figures: []metric.Figure{metric.Of("denials.tool", 2)}}}})
	}
	for _, late := range []float64{400, 90} {
		p.Take(metric.Event{Line: "task events waiting", Sets: []metric.Set{{Figures: []metric.Figure{{Name: "tasks.events.lateness", Unit: metric.Seconds, Value: late}}}}})
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/local/metrics", nil))
	page := w.Body.String()
	for _, line := range []string{`agentplatform_turns_total{status="succeeded"} 2`, `agentplatform_turns_total{status="failed"} 1`, `agentplatform_tokens_input_total{model="m"} 30`,
		`agentplatform_cost_total{model="m"} 0.75`, `agentplatform_denials_tool_total 6`, `agentplatform_turn_duration_seconds_bucket{status="succeeded",le="0.025"} 2`,
		`agentplatform_turn_duration_seconds_bucket{status="succeeded",le="0.01"} 0`,
		`agentplatform_tasks_events_lateness_seconds 90`} {
		require.Contains(t, page, line+"\n")
	}
	problems, err := promlint.New(w.Body).Lint()
	require.NoError(t, err)
	require.Empty(t, problems)
}
