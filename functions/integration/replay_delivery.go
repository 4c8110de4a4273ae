package integration

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/integration"
)

// ReplayDelivery answers Mutation.replayDelivery: an operator has a delivery taken in once more. Its tenant is the delivery's, for operators belong to none.
func ReplayDelivery(env *handler.Env) lambda.Handler {
	type args struct {
		ID string `json:"id"`
	}
	type event struct {
		TenantID string `json:"tenantId"`
		EventID  string `json:"eventId"`
	}
	db, operators, process := env.DB(), env.Operators(), env.Invoke("process-task-event")
	after := follow{db: db, to: env.Publish(), dispatch: env.Invoke("dispatch-turn"), reply: env.Invoke("deliver-replies"), signal: env.Signal()}
	return handler.Resolver(func(ctx context.Context, a args) (integration.Delivery, error) {
		if _, err := operators.Check(ctx); err != nil {
			return integration.Delivery{}, err
		}
		again, err := integration.Replay(ctx, db, a.ID)
		if err != nil {
			return integration.Delivery{}, err
		}
		after.taken(ctx, again.Taken)
		if again.TaskEvent != "" {
			if err := process(ctx, event{again.Delivery.TenantID, again.TaskEvent}); err != nil {
				return integration.Delivery{}, err
			}
		}
		return again.Delivery, nil
	})
}
