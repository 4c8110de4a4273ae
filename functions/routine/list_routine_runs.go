package routine

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/routine"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// ListRoutineRuns answers Query.listRoutineRuns.
func ListRoutineRuns(env *handler.Env) lambda.Handler {
	db, key := env.DB(), env.PageKey()
	type args struct {
		Filter routine.RunFilter `json:"filter"`
		page.Request
	}
	return handler.Resolver(func(ctx context.Context, a args) (page.Page[routine.Run], error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return page.Page[routine.Run]{}, err
		}
		return page.List(key, a.Request, routine.Run.Cursor, func(after *routine.RunCursor, limit int) ([]routine.Run, error) {
			return routine.Runs(ctx, db.In(caller.TenantID), a.Filter, after, limit)
		}, caller.TenantID, "listRoutineRuns", a.Filter)
	})
}
