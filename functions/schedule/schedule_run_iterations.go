package schedule

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/schedule"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// ScheduleRunIterations answers ScheduleRun.iterations for a list of runs.
func ScheduleRunIterations(env *handler.Env) lambda.Handler {
	db := env.DB()
	return handler.Batch(func(ctx context.Context, runs []source, _ struct{}) ([][]schedule.Iteration, error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return nil, err
		}
		all, err := schedule.Iterations(ctx, db.In(caller.TenantID), ids(runs))
		if err != nil {
			return nil, err
		}
		lists := make([][]schedule.Iteration, len(runs))
		for i, r := range runs {
			lists[i] = append([]schedule.Iteration{}, all[r.ID]...)
		}
		return lists, nil
	})
}
