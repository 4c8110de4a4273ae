package tool

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/toolserver"
)

// ListToolServers answers Query.listToolServers.
func ListToolServers(env *handler.Env) lambda.Handler {
	db, key := env.DB(), env.PageKey()
	return handler.Resolver(func(ctx context.Context, r page.Request) (page.Page[toolserver.Server], error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return page.Page[toolserver.Server]{}, err
		}
		return page.List(key, r, toolserver.Server.Cursor, func(after *toolserver.Cursor, limit int) ([]toolserver.Server, error) {
			return toolserver.List(ctx, db.In(caller.TenantID), after, limit)
		}, caller.TenantID, "listToolServers")
	})
}
