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

// undelivered is how old an event is that nobody published when its writer is taken for dead.
const undelivered = 30 * time.Second

// ReapTurns finds what was lost on the way: turns that nobody works on, events that nobody published.
func ReapTurns(env *handler.Env) lambda.Handler {
	db, to, dispatch := env.DB(), env.Publish(), env.Invoke("dispatch-turn")
	return handler.Schedule(func(ctx context.Context) error {
		turns, reapErr := turn.Reap(ctx, db, func(ctx context.Context, tenantID, turnID string) error {
			return dispatch(ctx, turn.Dispatch{TenantID: tenantID, TurnID: turnID})
		})
		events, sweepErr := notify.Sweep(ctx, db, to, undelivered)
		if turns > 0 || events > 0 {
			slog.InfoContext(ctx, "reaped", "turns", turns, "events", events)
		}
		return errors.Join(reapErr, sweepErr)
	})
}
