package routine

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/callback"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/routine"
)

// SettleRoutineRun launches a run that was written, or writes how one has ended; called on time, it finds those that nobody told of.
func SettleRoutineRun(env *handler.Env) lambda.Handler {
	answer := env.Invoke("answer-callbacks")
	settler := &routine.Settler{
		Engine: routine.Engine{DB: env.DB(), Machines: env.Machines(), Runs: env.Runs(), Function: env.FunctionName(), Signal: env.Signal()},
		Answer: func(ctx context.Context, t callback.Task) error { return answer(ctx, t) },
	}
	return handler.Task(settler.Run)
}
