package tool

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/tool"
)

// ListToolServers answers Query.listToolServers.
func ListToolServers(env *handler.Env) lambda.Handler {
	db, key := env.DB(), env.PageKey()
	return handler.Resolver(func(ctx context.Context, r page.Request) (page.Page[tool.Server], error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return page.Page[tool.Server]{}, err
		}
		return page.List(key, r, tool.Server.Cursor, func(after *tool.ServerCursor, limit int) ([]tool.Server, error) {
			return tool.Servers(ctx, db.In(caller.TenantID), after, limit)
		}, caller.TenantID, "listToolServers")
	})
}
