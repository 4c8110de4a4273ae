package trace_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/trace"
)

// none is a sink that wants nothing.
type none struct{ asked []string }

func (n *none) Start(ctx context.Context, name string, _ trace.Kind, at time.Time) (context.Context, trace.Recorder) {
	n.asked = append(n.asked, name)
	if at.IsZero() {
		n.asked = append(n.asked, "without a time")
	}
	return ctx, nil
}

func work(ctx context.Context) {
	ctx, turn := trace.Start(ctx, trace.Internal, trace.InvokeAgent, "agent-1")
	turn.Identify(ctx)
	_, call := trace.Start(ctx, trace.Client, trace.Chat, "model-1")
	call.String(trace.RequestModel, "model-1")
	call.Int(trace.InputTokens, 100)
	call.Float(trace.TimeToFirstChunk, 0.5)
	call.Strings(trace.FinishReasons, "end_turn")
	call.Fail("throttled")
	call.End()
	turn.End()
}

// Without a sink a span allocates nothing, however it is used.
func TestWithoutASinkNothingIsAllocated(t *testing.T) {
	ctx := trace.In(t.Context(), trace.Scope{TenantID: "t1", TurnID: "u1"})
	require.Zero(t, testing.AllocsPerRun(1000, func() { work(ctx) }))
}

func TestTheSinkOfTheContextComesFirst(t *testing.T) {
	standard, own := &none{}, &none{}
	trace.SetDefault(standard)
	t.Cleanup(func() { trace.SetDefault(nil) })
	work(t.Context())
	work(trace.With(t.Context(), own))
	_, span := trace.Start(t.Context(), trace.Internal, "planning", "")
	require.Nil(t, span)
	require.Equal(t, []string{"invoke_agent agent-1", "chat model-1", "planning"}, standard.asked)
	require.Equal(t, []string{"invoke_agent agent-1", "chat model-1"}, own.asked)
}

func TestAScopeIsNarrowed(t *testing.T) {
	ctx := trace.In(t.Context(), trace.Scope{TenantID: "t1", RequestID: "r1"})
	ctx = trace.In(ctx, trace.Scope{TurnID: "u1", RequestID: "r2"})
	require.Equal(t, trace.Scope{TenantID: "t1", TurnID: "u1", RequestID: "r2"}, trace.From(ctx))
	require.Equal(t, trace.Scope{}, trace.From(t.Context()))
}

type coded struct{ code string }

func (c coded) Error() string     { return "secret" }
func (c coded) ErrorCode() string { return c.code }

func TestLinesSayWhoseWorkTheyAre(t *testing.T) {
	scope := trace.Scope{TenantID: "t1", ThreadID: "CHAT-1", TurnID: "u1", RequestID: "r1"}
	failure := fmt.Errorf("secret: %w", errors.Join(coded{"Throttled"}, errors.New("secret")))
	line := func(ctx context.Context, texts bool, more ...any) (got map[string]any) {
		var out bytes.Buffer
		slog.New(trace.Logs(slog.NewJSONHandler(&out, nil), texts)).With("function", "f").ErrorContext(ctx, "it failed", more...)
		require.NoError(t, json.Unmarshal(out.Bytes(), &got))
		delete(got, "time")
		delete(got, "level")
		return got
	}
	in := trace.In(t.Context(), scope)
	ids := map[string]any{"msg": "it failed", "function": "f", "tenant_id": "t1", "thread_id": "CHAT-1", "turn_id": "u1", "request_id": "r1"}
	require.Equal(t, ids, line(in, false))
	ids["turn_id"] = "its own"
	require.Equal(t, ids, line(in, false, "turn_id", "its own"))
	require.Equal(t, "trace_test.coded(Throttled) *errors.errorString", line(in, false, "error", failure)["error"])
	require.Equal(t, failure.Error(), line(in, true, "error", failure)["error"])
	require.Equal(t, map[string]any{"msg": "it failed", "function": "f", "error": failure.Error()}, line(t.Context(), false, "error", failure), "nobody's work")
}

func TestTypesOfErrors(t *testing.T) {
	for want, err := range map[string]error{
		"":                    nil,
		"timeout":             fmt.Errorf("x: %w", context.DeadlineExceeded),
		"canceled":            errors.Join(errors.New("x"), context.Canceled),
		"Throttled":           fmt.Errorf("x: %w", coded{"Throttled"}),
		"*errors.errorString": fmt.Errorf("x: %w", errors.New("y")),
	} {
		require.Equal(t, want, trace.Type(err))
	}
}

// BenchmarkWithoutASink is what the spans of a model call and its turn cost where nobody records them.
func BenchmarkWithoutASink(b *testing.B) {
	ctx := trace.In(b.Context(), trace.Scope{TenantID: "t1", TurnID: "u1"})
	b.ReportAllocs()
	for b.Loop() {
		work(ctx)
	}
}
