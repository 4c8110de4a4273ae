package compliance

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/audit/export"
	"github.com/agentplatform/agentplatform/pkg/handler"
)

// RunExport runs one export job; called on time, it finds the jobs that nobody runs.
func RunExport(env *handler.Env) lambda.Handler {
	again := env.Invoke("run-export")
	runner := &export.Runner{DB: env.DB(), Reader: env.Reader(), Bucket: env.Exports(), Sign: env.Sign(), Signal: env.Signal(),
		Again: func(ctx context.Context, jobID string) error { return again(ctx, runExport{jobID}) }}
	return handler.Task(func(ctx context.Context, r runExport) error {
		if r.JobID == "" {
			return runner.Sweep(ctx)
		}
		return runner.Run(ctx, r.JobID)
	})
}
