package thread

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/thread"
)

// ThreadMessages answers Thread.messages for a list of threads. A token belongs to one thread, so it fits a single one only.
func ThreadMessages(env *handler.Env) lambda.Handler {
	db, key := env.DB(), env.PageKey()
	type args struct {
		page.Request
		Order thread.Order `json:"order"`
	}
	return handler.Batch(func(ctx context.Context, threads []thread.Ref, a args) ([]page.Page[thread.Message], error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return nil, err
		}
		return page.Nested(key, a.Request, threads, thread.Message.Cursor, func(after *thread.MessageCursor, limit int) (map[string][]thread.Message, error) {
			return thread.Messages(ctx, db.In(caller.TenantID), threads, a.Order, after, limit)
		}, func(t thread.Ref) (string, []any) {
			return t.UUID, []any{caller.TenantID, "messages", t.UUID, a.Order}
		})
	})
}
