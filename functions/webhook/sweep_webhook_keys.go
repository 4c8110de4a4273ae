package webhook

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/webhook"
)

// SweepWebhookKeys forgets Idempotency-Keys that are a day old.
func SweepWebhookKeys(env *handler.Env) lambda.Handler {
	db := env.DB()
	return handler.Schedule(func(ctx context.Context) error { return webhook.SweepKeys(ctx, db) })
}
