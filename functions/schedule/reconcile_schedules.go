package schedule

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/schedule"
)

// ReconcileSchedules is the drift check: it makes the clock hold what the database says, and starts what was missed.
func ReconcileSchedules(env *handler.Env) lambda.Handler {
	keeper := &schedule.Keeper{DB: env.DB(), Clock: env.Clock(), Runs: env.Runs()}
	return handler.Schedule(func(ctx context.Context) error {
		_, err := keeper.Reconcile(ctx)
		return err
	})
}
