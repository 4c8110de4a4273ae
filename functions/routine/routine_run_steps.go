package routine

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/routine"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// RoutineRunSteps answers RoutineRun.steps for a list of runs. A token belongs to one of them.
func RoutineRunSteps(env *handler.Env) lambda.Handler {
	db, runs, key := env.DB(), env.RunReader(), env.PageKey()
	return handler.Batch(func(ctx context.Context, of []source, a page.Request) ([]page.Page[routine.Step], error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return nil, err
		}
		if a.NextToken != nil && len(of) > 1 {
			return nil, fault.Invalid("the page token is not one of this list")
		}
		q := db.In(caller.TenantID)
		pages := make([]page.Page[routine.Step], len(of))
		for i, s := range of {
			scope := []any{caller.TenantID, "steps", s.ID}
			size, after, err := page.Start[routine.StepCursor](key, a, scope...)
			if err != nil {
				return nil, err
			}
			r, err := routine.GetRun(ctx, q, s.ID)
			if err != nil {
				return nil, err
			}
			steps, fit, err := routine.Steps(ctx, q, runs, r, after, size+1, routine.MaxPage/len(of))
			if err != nil {
				return nil, err
			}
			pages[i] = page.Cut(key, steps, min(size, fit), routine.Step.Cursor, scope...)
		}
		return pages, nil
	})
}
