package otlp_test

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/agentplatform/agentplatform/pkg/otlp"
	"github.com/agentplatform/agentplatform/pkg/trace"
)

// receiver is an OTLP/HTTP endpoint.
type receiver struct {
	t  *testing.T
	mu sync.Mutex

	headers   http.Header
	resources []*spans.ResourceSpans
}

func receive(t *testing.T) *receiver {
	r := &receiver{t: t}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=abc")
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	unpacked, err := gzip.NewReader(q.Body)
	if err == nil && q.URL.Path == "/v1/traces" {
		var body []byte
		var export collector.ExportTraceServiceRequest
		if body, err = io.ReadAll(unpacked); err == nil {
			err = proto.Unmarshal(body, &export)
		}
		r.headers, r.resources = q.Header, append(r.resources, export.GetResourceSpans()...)
	}
	if err != nil {
		r.t.Error(err)
	}
	answer, _ := proto.Marshal(&collector.ExportTraceServiceResponse{})
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(answer)
}

func attributes(list []*common.KeyValue) map[string]any {
	out := map[string]any{}
	for _, a := range list {
		switch v := a.GetValue().GetValue().(type) {
		case *common.AnyValue_StringValue:
			out[a.GetKey()] = v.StringValue
		case *common.AnyValue_IntValue:
			out[a.GetKey()] = v.IntValue
		case *common.AnyValue_DoubleValue:
			out[a.GetKey()] = v.DoubleValue
		case *common.AnyValue_BoolValue:
			out[a.GetKey()] = v.BoolValue
		case *common.AnyValue_ArrayValue:
			var all []string
			for _, s := range v.ArrayValue.GetValues() {
				all = append(all, s.GetStringValue())
			}
			out[a.GetKey()] = all
		}
	}
	return out
}

// Spans reach a collector over the real protocol, with their times, parents, kinds and attributes.
func TestSpansReachTheCollector(t *testing.T) {
	r := receive(t)
	e, err := otlp.Open(t.Context(), "agentplatform-test")
	require.NoError(t, err)
	ctx := trace.With(trace.In(t.Context(), trace.Scope{TenantID: "t1", ThreadID: "CHAT-1"}), e)
	began := time.Now().Add(-time.Minute).Round(0)
	ctx, turn := trace.StartAt(ctx, began, trace.Internal, trace.InvokeAgent, "a1")
	turn.Identify(ctx)
	_, chat := trace.Start(ctx, trace.Client, trace.Chat, "model-1")
	chat.Strings(trace.FinishReasons, "end_turn")
	chat.Int(trace.InputTokens, 12)
	chat.Float(trace.TimeToFirstChunk, 0.5)
	chat.Fail("throttled")
	chat.End()
	turn.End()
	require.NoError(t, e.Close(t.Context()))

	require.Len(t, r.resources, 1)
	require.Equal(t, "abc", r.headers.Get("X-Key"))
	about := attributes(r.resources[0].GetResource().GetAttributes())
	require.Equal(t, "agentplatform-test", about["service.name"])
	require.Equal(t, "test", about["deployment.environment.name"])
	require.Equal(t, semconv.SchemaURL, r.resources[0].GetScopeSpans()[0].GetSchemaUrl())
	got := r.resources[0].GetScopeSpans()[0].GetSpans()
	require.Len(t, got, 2)
	require.Equal(t, "chat model-1", got[0].GetName())
	require.Equal(t, spans.Span_SPAN_KIND_CLIENT, got[0].GetKind())
	require.Equal(t, got[1].GetSpanId(), got[0].GetParentSpanId())
	require.Equal(t, got[1].GetTraceId(), got[0].GetTraceId())
	require.Equal(t, spans.Status_STATUS_CODE_ERROR, got[0].GetStatus().GetCode())
	require.Empty(t, got[0].GetStatus().GetMessage())
	require.Equal(t, map[string]any{"gen_ai.response.finish_reasons": []string{"end_turn"}, "gen_ai.usage.input_tokens": int64(12), "gen_ai.response.time_to_first_chunk": 0.5,
		"error.type": "throttled"}, attributes(got[0].GetAttributes()))
	require.Equal(t, "invoke_agent a1", got[1].GetName())
	require.Equal(t, spans.Span_SPAN_KIND_INTERNAL, got[1].GetKind())
	require.Equal(t, uint64(began.UnixNano()), got[1].GetStartTimeUnixNano())
	require.Empty(t, got[1].GetParentSpanId())
	require.Equal(t, map[string]any{"agentplatform.tenant_id": "t1", "gen_ai.conversation.id": "CHAT-1"}, attributes(got[1].GetAttributes()))
}

// What the sampler leaves out costs no more than that.
func TestTheSamplerIsAsked(t *testing.T) {
	r := receive(t)
	t.Setenv("OTEL_TRACES_SAMPLER", "always_off")
	e, err := otlp.Open(t.Context(), "agentplatform-test")
	require.NoError(t, err)
	ctx, span := trace.Start(trace.With(t.Context(), e), trace.Internal, "planning", "")
	require.Nil(t, span)
	_, span = trace.Start(ctx, trace.Client, trace.Chat, "model-1")
	require.Nil(t, span)
	require.NoError(t, e.Close(context.Background()))
	require.Empty(t, r.resources)
}

// The names are those of the conventions' version that the exporter tells of.
func TestTheNamesAreTheConventions(t *testing.T) {
	for name, key := range map[string]string{
		trace.OperationName: string(semconv.GenAIOperationNameKey), trace.ProviderName: string(semconv.GenAIProviderNameKey), trace.ConversationID: string(semconv.GenAIConversationIDKey),
		trace.AgentID: string(semconv.GenAIAgentIDKey), trace.AgentName: string(semconv.GenAIAgentNameKey), trace.RequestModel: string(semconv.GenAIRequestModelKey),
		trace.RequestMaxTokens: string(semconv.GenAIRequestMaxTokensKey), trace.FinishReasons: string(semconv.GenAIResponseFinishReasonsKey),
		trace.TimeToFirstChunk: string(semconv.GenAIResponseTimeToFirstChunkKey), trace.InputTokens: string(semconv.GenAIUsageInputTokensKey),
		trace.OutputTokens: string(semconv.GenAIUsageOutputTokensKey), trace.CacheReadTokens: string(semconv.GenAIUsageCacheReadInputTokensKey),
		trace.CacheCreationTokens: string(semconv.GenAIUsageCacheCreationInputTokensKey), trace.ToolName: string(semconv.GenAIToolNameKey),
		trace.ToolCallID: string(semconv.GenAIToolCallIDKey), trace.ToolType: string(semconv.GenAIToolTypeKey), trace.ErrorType: string(semconv.ErrorTypeKey),
		trace.InvokeAgent: semconv.GenAIOperationNameInvokeAgent.Value.AsString(), trace.Chat: semconv.GenAIOperationNameChat.Value.AsString(),
		trace.ExecuteTool: semconv.GenAIOperationNameExecuteTool.Value.AsString(), trace.Bedrock: semconv.GenAIProviderNameAWSBedrock.Value.AsString(),
	} {
		require.Equal(t, key, name)
	}
}
