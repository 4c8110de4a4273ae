package connection

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/connection"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// ListConnections answers Query.listConnections.
func ListConnections(env *handler.Env) lambda.Handler {
	db, key := env.DB(), env.PageKey()
	return handler.Resolver(func(ctx context.Context, r page.Request) (page.Page[connection.Connection], error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return page.Page[connection.Connection]{}, err
		}
		return page.List(key, r, connection.Connection.Cursor, func(after *connection.Cursor, limit int) ([]connection.Connection, error) {
			return connection.List(ctx, db.In(caller.TenantID), caller, after, limit)
		}, caller.TenantID, caller.UserID, string(caller.Role), "listConnections")
	})
}
