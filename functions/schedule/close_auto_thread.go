package schedule

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/notify"
	"github.com/agentplatform/agentplatform/pkg/schedule"
)

// CloseAutoThread answers the states CloseThread and FailThread: it records the result of the execution and closes or fails its thread.
func CloseAutoThread(env *handler.Env) lambda.Handler {
	db, to, signal := env.DB(), env.Publish(), env.Signal()
	return handler.State(func(ctx context.Context, s schedule.State) (schedule.Result, error) {
		r, notices, err := schedule.Close(ctx, db, s)
		if err == nil {
			signal("execution closed")
			notify.Deliver(ctx, db, to, s.Input.TenantID, notices...)
		}
		return r, err
	})
}
