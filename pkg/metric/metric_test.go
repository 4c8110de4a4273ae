package metric_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/jsonschema"
	"github.com/agentplatform/agentplatform/pkg/metric"
)

var event = metric.Event{Line: "turn ended", About: []slog.Attr{slog.String("agent_id", "a1")}, Sets: []metric.Set{
	{By: "status", Value: "failed", Figures: []metric.Figure{metric.Of("turns", 1), metric.Took("turn.duration", 1500*time.Microsecond)}},
	{Figures: []metric.Figure{metric.Of("denials.tool", 2)}},
	{By: "model", Value: "m"},
}}

func emit(t *testing.T, sink metric.Sink) (line map[string]any, raw string) {
	t.Helper()
	var out bytes.Buffer
	was := slog.Default()
	slog.SetDefault(slog.New(slog.NewJSONHandler(&out, nil)))
	metric.SetDefault(sink)
	defer func() {
		slog.SetDefault(was)
		metric.SetDefault(nil)
	}()
	metric.Emit(t.Context(), event)
	require.NoError(t, json.Unmarshal(out.Bytes(), &line))
	delete(line, "time")
	return line, out.String()
}

// An event is one line with its figures; in AWS the same line says which of them are metrics, by a schema that CloudWatch has published.
func TestAnEventIsALine(t *testing.T) {
	want := map[string]any{"level": "INFO", "msg": "turn ended", "agent_id": "a1", "status": "failed", "turns": 1.0, "turn.duration": 1.5, "denials.tool": 2.0, "model": "m"}
	line, _ := emit(t, nil)
	require.Equal(t, want, line)

	line, raw := emit(t, metric.EMF{Namespace: "agentplatform/test"})
	s, err := jsonschema.Compile(schema)
	require.NoError(t, err)
	require.NoError(t, s.Validate(raw))
	about := line["_aws"].(map[string]any)
	require.InDelta(t, float64(time.Now().UnixMilli()), about["Timestamp"], 60_000)
	require.Equal(t, []any{
		map[string]any{"Namespace": "agentplatform/test", "Dimensions": []any{[]any{"status"}}, "Metrics": []any{
			map[string]any{"Name": "turns", "Unit": "Count"}, map[string]any{"Name": "turn.duration", "Unit": "Milliseconds"}}},
		map[string]any{"Namespace": "agentplatform/test", "Dimensions": []any{[]any{}}, "Metrics": []any{map[string]any{"Name": "denials.tool", "Unit": "Count"}}},
	}, about["CloudWatchMetrics"])
	for _, d := range about["CloudWatchMetrics"].([]any) { // what it refers to is at the top of the line
		for _, m := range d.(map[string]any)["Metrics"].([]any) {
			require.IsType(t, 1.0, line[m.(map[string]any)["Name"].(string)])
		}
		for _, set := range d.(map[string]any)["Dimensions"].([]any) {
			for _, name := range set.([]any) {
				require.IsType(t, "", line[name.(string)])
			}
		}
	}
	delete(line, "_aws")
	require.Equal(t, want, line)
}

// schema is the embedded metric format's, as its specification words it.
const schema = `{
	"type": "object", "required": ["_aws"],
	"properties": {"_aws": {"type": "object", "required": ["Timestamp", "CloudWatchMetrics"], "properties": {
		"Timestamp": {"type": "integer"},
		"CloudWatchMetrics": {"type": "array", "items": {"type": "object", "required": ["Namespace", "Dimensions", "Metrics"], "additionalProperties": false, "properties": {
			"Namespace": {"type": "string", "pattern": "^[0-9A-Za-z.\\-_/#:]+$", "minLength": 1, "maxLength": 255},
			"Dimensions": {"type": "array", "minItems": 1, "items": {"type": "array", "minItems": 0, "maxItems": 30, "items": {"type": "string", "minLength": 1, "maxLength": 250}}},
			"Metrics": {"type": "array", "minItems": 1, "maxItems": 100, "items": {"type": "object", "required": ["Name"], "properties": {
				"Name": {"type": "string", "minLength": 1, "maxLength": 1024},
				"Unit": {"type": "string", "pattern": "^(Seconds|Microseconds|Milliseconds|Bytes|Kilobytes|Megabytes|Gigabytes|Terabytes|Bits|Kilobits|Megabits|Gigabits|Terabits|Percent|Count|None)$"},
				"StorageResolution": {"type": "integer"}}}}}}}}}}}`
