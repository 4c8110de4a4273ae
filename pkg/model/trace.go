package model

import (
	"context"
	"time"

	"github.com/agentplatform/agentplatform/pkg/trace"
)

// Traced is m with a span around each call, its retries included. The provider is called as the OpenTelemetry conventions call it.
func Traced(m Model, provider string) Model { return traced{m, provider} }

type traced struct {
	Model
	provider string
}

// Provider is who answers m's calls; "": m does not say.
func Provider(m Model) string {
	if t, ok := m.(traced); ok {
		return t.provider
	}
	return ""
}

// Converse implements Model.
func (t traced) Converse(ctx context.Context, r Request, s Stream) (Response, error) {
	ctx, span := trace.Start(ctx, trace.Client, trace.Chat, r.ModelID)
	if span == nil {
		return t.Model.Converse(ctx, r, s)
	}
	defer span.End()
	span.String(trace.OperationName, trace.Chat)
	span.String(trace.ProviderName, t.provider)
	span.String(trace.RequestModel, r.ModelID)
	if r.MaxTokens > 0 {
		span.Int(trace.RequestMaxTokens, r.MaxTokens)
	}
	span.Identify(ctx)
	if s == nil {
		s = Discard
	}
	first := &timed{Stream: s, span: span, began: time.Now()}
	response, err := t.Model.Converse(ctx, r, first)
	if err != nil {
		span.Fail(trace.Type(err))
		return response, err
	}
	if response.StopReason != "" {
		span.Strings(trace.FinishReasons, response.StopReason)
	}
	u := response.Usage
	span.Int(trace.InputTokens, u.InputTokens+u.CacheReadTokens+u.CacheWriteTokens)
	span.Int(trace.OutputTokens, u.OutputTokens)
	if u.CacheReadTokens > 0 {
		span.Int(trace.CacheReadTokens, u.CacheReadTokens)
	}
	if u.CacheWriteTokens > 0 {
		span.Int(trace.CacheCreationTokens, u.CacheWriteTokens)
	}
	return response, nil
}

// timed tells when the first text comes.
type timed struct {
	Stream
	span  *trace.Span
	began time.Time
	text  bool
}

func (t *timed) Text(delta string) {
	if !t.text {
		t.text = true
		t.span.Float(trace.TimeToFirstChunk, time.Since(t.began).Seconds())
	}
	t.Stream.Text(delta)
}
