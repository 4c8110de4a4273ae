package thread

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/thread"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// ThreadTurns answers Thread.turns for a list of threads. A token belongs to one thread, so it fits a single one only.
func ThreadTurns(env *handler.Env) lambda.Handler {
	db, key := env.DB(), env.PageKey()
	return handler.Batch(func(ctx context.Context, threads []thread.Ref, r page.Request) ([]page.Page[turn.Turn], error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return nil, err
		}
		return page.Nested(key, r, threads, turn.Turn.Cursor, func(after *turn.Cursor, limit int) (map[string][]turn.Turn, error) {
			return turn.List(ctx, db.In(caller.TenantID), threads, after, limit)
		}, func(t thread.Ref) (string, []any) {
			return t.UUID, []any{caller.TenantID, "turns", t.UUID}
		})
	})
}
