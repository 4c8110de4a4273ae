package turn

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/notify"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// staleNotification is how old a notification is when its writer is taken for dead.
const staleNotification = 30 * time.Second

// ReapTurns finds what was lost on the way: turns that nobody works on, notifications that nobody published.
func ReapTurns(env *handler.Env) lambda.Handler {
	db, to, dispatch := env.DB(), env.Publish(), env.Invoke("dispatch-turn")
	return handler.Schedule(func(ctx context.Context) error {
		turns, reapErr := turn.Reap(ctx, db, func(ctx context.Context, tenantID, turnID string) error {
			return dispatch(ctx, turn.Dispatch{TenantID: tenantID, TurnID: turnID})
		})
		notices, sweepErr := notify.Sweep(ctx, db, to, staleNotification)
		if turns > 0 || notices > 0 {
			slog.InfoContext(ctx, "reaped", "turns", turns, "notifications", notices)
		}
		return errors.Join(reapErr, sweepErr)
	})
}
