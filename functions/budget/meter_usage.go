package budget

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/budget"
	"github.com/agentplatform/agentplatform/pkg/handler"
)

// MeterUsage adds up what ended turns have used, and notes which parts of a budget that spent.
func MeterUsage(env *handler.Env) lambda.Handler {
	db := env.DB()
	return handler.Schedule(func(ctx context.Context) error { return budget.Meter(ctx, db) })
}
