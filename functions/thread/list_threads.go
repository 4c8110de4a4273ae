package thread

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/thread"
)

// ListThreads answers Query.listThreads.
func ListThreads(env *handler.Env) lambda.Handler {
	db, key := env.DB(), env.PageKey()
	type args struct {
		Filter thread.Filter `json:"filter"`
		page.Request
	}
	return handler.Resolver(func(ctx context.Context, a args) (page.Page[thread.Thread], error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return page.Page[thread.Thread]{}, err
		}
		return page.List(key, a.Request, thread.Thread.Cursor, func(after *thread.Cursor, limit int) ([]thread.Thread, error) {
			return thread.List(ctx, db.In(caller.TenantID), a.Filter, after, limit)
		}, caller.TenantID, "listThreads", a.Filter)
	})
}
