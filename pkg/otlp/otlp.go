// Package otlp exports spans to an OpenTelemetry collector, over OTLP by HTTP. The agent runtime and local mode have it; functions have X-Ray, for this is large.
package otlp

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	api "go.opentelemetry.io/otel/trace"

	"github.com/agentplatform/agentplatform/pkg/trace"
)

// scope names what the spans come from.
const scope = "github.com/agentplatform/agentplatform"

// Exporter is a sink of spans. It sends them in batches behind the work's back, and drops them where the collector does not keep up.
type Exporter struct {
	provider *sdk.TracerProvider
	tracer   api.Tracer
}

// Open makes the exporter that OpenTelemetry's standard variables describe (OTEL_EXPORTER_OTLP_ENDPOINT, _HEADERS, _TIMEOUT, OTEL_TRACES_SAMPLER, OTEL_RESOURCE_ATTRIBUTES, …); service is
// its name unless OTEL_SERVICE_NAME says another. It does not wait for the collector. Whoever opens it must Close it.
func Open(ctx context.Context, service string) (*Exporter, error) {
	client, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_ENDPOINT: %w", err)
	}
	about, err := resource.New(ctx, resource.WithAttributes(semconv.ServiceName(service)), resource.WithFromEnv(), resource.WithTelemetrySDK())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { slog.Warn("spans could not be exported", "error", err) }))
	p := sdk.NewTracerProvider(sdk.WithBatcher(client), sdk.WithResource(about))
	return &Exporter{p, p.Tracer(scope, api.WithSchemaURL(semconv.SchemaURL))}, nil
}

// Close sends what is left, until ctx ends.
func (e *Exporter) Close(ctx context.Context) error { return e.provider.Shutdown(ctx) }

// Start implements trace.Sink.
func (e *Exporter) Start(ctx context.Context, name string, kind trace.Kind, at time.Time) (context.Context, trace.Recorder) {
	as := api.SpanKindInternal
	if kind == trace.Client {
		as = api.SpanKindClient
	}
	ctx, s := e.tracer.Start(ctx, name, api.WithTimestamp(at), api.WithSpanKind(as))
	if !s.IsRecording() { // not sampled
		return ctx, nil
	}
	return ctx, span{s}
}

type span struct{ api.Span }

// Set implements trace.Recorder.
func (s span) Set(key string, value any) {
	k := attribute.Key(key)
	switch v := value.(type) {
	case string:
		s.SetAttributes(k.String(v))
	case int:
		s.SetAttributes(k.Int(v))
	case float64:
		s.SetAttributes(k.Float64(v))
	case bool:
		s.SetAttributes(k.Bool(v))
	case []string:
		s.SetAttributes(k.StringSlice(v))
	}
}

// Fail implements trace.Recorder.
func (s span) Fail(errorType string) {
	s.SetAttributes(attribute.String(trace.ErrorType, errorType))
	s.SetStatus(codes.Error, "")
}

// End implements trace.Recorder.
func (s span) End() { s.Span.End() }
