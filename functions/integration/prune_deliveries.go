package integration

import (
	"context"
	"log/slog"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/integration"
)

// PruneDeliveries forgets what came in more than 90 days ago, and what was kept because of it. Threads stay.
func PruneDeliveries(env *handler.Env) lambda.Handler {
	db := env.DB()
	return handler.Schedule(func(ctx context.Context) error {
		rows, err := integration.Prune(ctx, db)
		if rows > 0 {
			slog.InfoContext(ctx, "pruned what deliveries left", "rows", rows)
		}
		return err
	})
}
