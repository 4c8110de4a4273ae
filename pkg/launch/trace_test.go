package launch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/aws/aws-xray-sdk-go/v2/xray"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/trace"
)

const traceID = "1-5759e988-bd862e3fe1be46a994272793"

// sent is one subsegment as X-Ray's daemon gets it.
type sent struct {
	TraceID     string         `json:"trace_id"`
	Name        string         `json:"name"`
	Type        string         `json:"type"`
	Namespace   string         `json:"namespace"`
	StartTime   float64        `json:"start_time"`
	Fault       bool           `json:"fault"`
	Annotations map[string]any `json:"annotations"`
	Metadata    map[string]map[string]any
	Cause       *struct {
		Exceptions []struct{ Type, Message string }
	}
	Subsegments []sent
}

type function func(ctx context.Context) error

func (f function) Invoke(ctx context.Context, _ []byte) ([]byte, error) { return nil, f(ctx) }

// daemon receives what a function sends over UDP, as X-Ray's daemon does beside a function.
func daemon(t *testing.T) net.PacketConn {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, xray.Configure(xray.Config{DaemonAddr: conn.LocalAddr().String()}))
	return conn
}

func receive(t *testing.T, conn net.PacketConn) (s sent) {
	buffer := make([]byte, 64<<10)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
	n, _, err := conn.ReadFrom(buffer)
	require.NoError(t, err)
	header, body, ok := bytes.Cut(buffer[:n], []byte("\n"))
	require.True(t, ok)
	require.JSONEq(t, `{"format": "json", "version": 1}`, string(header))
	require.NotContains(t, string(body), "secret")
	require.NoError(t, json.Unmarshal(body, &s), "%s", body)
	return s
}

func invoked(sampled string) context.Context {
	return context.WithValue(context.Background(), xray.LambdaTraceHeaderKey, "Root="+traceID+";Parent=53995c3f42cd8ad8;Sampled="+sampled) //nolint:staticcheck // Lambda's own key
}

// A call's spans reach the daemon as one document: the function's subsegment with the others in it.
func TestSpansAreSegments(t *testing.T) {
	conn := daemon(t)
	t.Cleanup(func() { trace.SetDefault(nil) })
	began := time.Now().Add(-time.Minute)
	h := traced("dispatch-turn", function(func(ctx context.Context) error {
		ctx = trace.In(ctx, trace.Scope{TenantID: "t1", TurnID: "u1", ThreadID: "CHAT-1", AgentID: "a1", RequestID: "r1"})
		ctx, turn := trace.StartAt(ctx, began, trace.Internal, trace.InvokeAgent, "a1")
		turn.Identify(ctx)
		_, chat := trace.Start(ctx, trace.Client, trace.Chat, "anthropic.claude(x)")
		chat.Strings(trace.FinishReasons, "end_turn")
		chat.Int(trace.OutputTokens, 7)
		chat.Fail("throttled")
		chat.End()
		turn.End()
		return fault.Invalid("secret")
	}))
	_, err := h.Invoke(invoked("1"), nil)
	require.Error(t, err)

	got := receive(t, conn)
	require.Equal(t, "dispatch-turn", got.Name)
	require.Equal(t, traceID, got.TraceID)
	require.Equal(t, "subsegment", got.Type)
	require.True(t, got.Fault)
	require.Equal(t, "ValidationError", got.Cause.Exceptions[0].Type)
	require.Len(t, got.Subsegments, 1)
	turn := got.Subsegments[0]
	require.Equal(t, "invoke_agent a1", turn.Name)
	require.InDelta(t, float64(began.UnixMilli())/1000, turn.StartTime, 0.01)
	require.Equal(t, map[string]any{"agentplatform_tenant_id": "t1", "agentplatform_turn_id": "u1", "gen_ai_conversation_id": "CHAT-1", "gen_ai_agent_id": "a1"}, turn.Annotations)
	require.Equal(t, "r1", turn.Metadata["default"]["agentplatform.request_id"])
	require.Len(t, turn.Subsegments, 1)
	chat := turn.Subsegments[0]
	require.Equal(t, "chat anthropic.claude_x_", chat.Name)
	require.Equal(t, "remote", chat.Namespace)
	require.Equal(t, map[string]any{"error_type": "throttled"}, chat.Annotations)
	require.Equal(t, map[string]any{"error.type": "throttled", "gen_ai.response.finish_reasons": []any{"end_turn"}, "gen_ai.usage.output_tokens": 7.0}, chat.Metadata["default"])
	require.Equal(t, "throttled", chat.Cause.Exceptions[0].Type)
	require.Empty(t, chat.Cause.Exceptions[0].Message)
}

// What Lambda does not sample, and what is not within a call, is not recorded; the function does its work all the same.
func TestWhatIsNotSampledIsNotRecorded(t *testing.T) {
	conn := daemon(t)
	t.Cleanup(func() { trace.SetDefault(nil) })
	failure := errors.New("it fails")
	for _, ctx := range []context.Context{invoked("0"), context.Background()} {
		_, err := traced("dispatch-turn", function(func(ctx context.Context) error {
			ctx, span := trace.Start(ctx, trace.Internal, trace.InvokeAgent, "a1")
			require.Nil(t, span)
			_, span = trace.Start(ctx, trace.Internal, "planning", "")
			require.Nil(t, span)
			return failure
		})).Invoke(ctx, nil)
		require.ErrorIs(t, err, failure)
	}
	_, err := traced("sampled", function(func(context.Context) error { return nil })).Invoke(invoked("1"), nil)
	require.NoError(t, err)
	require.Equal(t, "sampled", receive(t, conn).Name, "nothing came before")
}
