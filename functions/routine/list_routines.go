package routine

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/routine"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// ListRoutines answers Query.listRoutines.
func ListRoutines(env *handler.Env) lambda.Handler {
	db, key := env.DB(), env.PageKey()
	return handler.Resolver(func(ctx context.Context, a page.Request) (page.Page[routine.Routine], error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return page.Page[routine.Routine]{}, err
		}
		return page.List(key, a, routine.Routine.Cursor, func(after *routine.Cursor, limit int) ([]routine.Routine, error) {
			return routine.List(ctx, db.In(caller.TenantID), after, limit)
		}, caller.TenantID, "listRoutines")
	})
}
