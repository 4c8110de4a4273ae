// Package launch starts a function in AWS Lambda: structured logs, metrics, tracing, adapters from the environment. Only function mains import it.
package launch

import (
	"context"
	"log/slog"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/agentplatform/agentplatform/pkg/cloud"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/manifest"
	"github.com/agentplatform/agentplatform/pkg/metric"
	"github.com/agentplatform/agentplatform/pkg/trace"
	"github.com/agentplatform/agentplatform/schema"
)

// Lambda serves the function of that manifest name until the platform stops it, with the adapters behind its needs.
func Lambda(name string, constructor handler.Constructor, adapters ...cloud.Adapter) {
	slog.SetDefault(slog.New(trace.Logs(lambdacontext.NewLogHandler(), os.Getenv("LOG_ERROR_TEXTS") == "true")).With("function", name))
	if namespace := os.Getenv("METRICS_NAMESPACE"); namespace != "" {
		metric.SetDefault(metric.EMF{Namespace: namespace})
	}
	rows, err := manifest.Parse(schema.Routes)
	if err != nil {
		panic(err)
	}
	row, ok := rows.Row(name)
	if !ok {
		panic("routes.json has no row " + name)
	}
	ports, err := cloud.Ports(context.Background(), cloud.Environment, adapters...)
	if err != nil {
		slog.Error("cannot start", "error", err)
		os.Exit(1)
	}
	lambda.Start(traced(name, request{constructor(handler.NewEnv(row, ports))}))
}

// request puts the id of the call into the context, for the log and the spans.
type request struct{ next lambda.Handler }

func (r request) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	if lc, ok := lambdacontext.FromContext(ctx); ok {
		ctx = trace.In(ctx, trace.Scope{RequestID: lc.AwsRequestID})
	}
	return r.next.Invoke(ctx, payload)
}
