package routine

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/callback"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/routine"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// StopRoutineRun answers Mutation.stopRoutineRun.
func StopRoutineRun(env *handler.Env) lambda.Handler {
	answer := env.Invoke("answer-callbacks")
	settler := &routine.Settler{
		Engine: routine.Engine{DB: env.DB(), Machines: env.Machines(), Runs: env.Runs(), Function: env.FunctionName(), Signal: env.Signal()},
		Answer: func(ctx context.Context, t callback.Task) error { return answer(ctx, t) },
	}
	type args struct {
		ID     string  `json:"id"`
		Reason *string `json:"reason"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (routine.Run, error) {
		caller, err := tenant.OwnerOrAdmin(ctx)
		if err != nil {
			return routine.Run{}, err
		}
		return settler.Stop(ctx, caller.TenantID, a.ID, a.Reason)
	})
}
