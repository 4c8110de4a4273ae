package turn

import (
	"context"
	"log/slog"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/retention"
)

// PruneTurns deletes what turns left besides messages and their records, and what calls left, once it is older than its tenant keeps it.
func PruneTurns(env *handler.Env) lambda.Handler {
	p := retention.Pruner{DB: env.DB()}
	return handler.Schedule(func(ctx context.Context) error {
		done, err := p.Run(ctx)
		if done != (retention.Pruned{}) {
			slog.InfoContext(ctx, "pruned", "turns", done.Turns, "steps", done.Steps, "payloads", done.Payloads, "prompt_texts", done.Texts,
				"client_tokens", done.Tokens, "executions", done.Executions, "evaluation_runs", done.Runs)
		}
		return err
	})
}
