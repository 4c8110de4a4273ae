package thread

import (
	"context"
	"log/slog"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/notify"
)

// PruneThreadEvents forgets what need not be told any more: events of turns that ended an hour ago, and others that are so old.
func PruneThreadEvents(env *handler.Env) lambda.Handler {
	db := env.DB()
	return handler.Schedule(func(ctx context.Context) error {
		pruned, err := notify.Prune(ctx, db)
		if pruned > 0 {
			slog.InfoContext(ctx, "pruned", "thread_events", pruned)
		}
		return err
	})
}
