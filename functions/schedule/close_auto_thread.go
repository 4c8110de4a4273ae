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
	db, to := env.DB(), env.Publish()
	type input struct {
		TenantID     string            `json:"tenantId"`
		ExecutionARN string            `json:"executionArn"`
		Failure      *schedule.Failure `json:"failure"` // of the state that failed; nil: none did
	}
	return handler.State(func(ctx context.Context, in input) (schedule.Result, error) {
		r, notices, err := schedule.Close(ctx, db, in.TenantID, in.ExecutionARN, in.Failure)
		if err == nil {
			notify.Deliver(ctx, db, to, in.TenantID, notices...)
		}
		return r, err
	})
}
