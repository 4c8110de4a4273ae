package schedule

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/schedule"
)

// OpenAutoThread answers the state OpenThread: the execution's thread, with its prompt and the queued turn.
func OpenAutoThread(env *handler.Env) lambda.Handler {
	db := env.DB()
	type input struct {
		ExecutionARN string         `json:"executionArn"`
		Input        schedule.Input `json:"input"`
	}
	return handler.State(func(ctx context.Context, in input) (schedule.Opened, error) {
		return schedule.Open(ctx, db, in.ExecutionARN, in.Input)
	})
}
