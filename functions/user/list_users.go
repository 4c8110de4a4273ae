package user

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/user"
)

// ListUsers answers Query.listUsers.
func ListUsers(env *handler.Env) lambda.Handler {
	db, key := env.DB(), env.PageKey()
	return handler.Resolver(func(ctx context.Context, r page.Request) (page.Page[user.User], error) {
		caller, err := tenant.OwnerOrAdmin(ctx)
		if err != nil {
			return page.Page[user.User]{}, err
		}
		return page.List(key, r, user.User.Cursor, func(after *user.Cursor, limit int) ([]user.User, error) {
			return user.List(ctx, db.In(caller.TenantID), after, limit)
		}, caller.TenantID, "listUsers")
	})
}
