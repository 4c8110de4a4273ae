package turn

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// TurnSteps answers Turn.steps for a list of turns.
func TurnSteps(env *handler.Env) lambda.Handler {
	db := env.DB()
	type source struct {
		ID string `json:"id"`
	}
	return handler.Batch(func(ctx context.Context, turns []source, _ struct{}) ([][]turn.Step, error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return nil, err
		}
		ids := make([]string, len(turns))
		for i, t := range turns {
			ids[i] = t.ID
		}
		byID, err := turn.Steps(ctx, db.In(caller.TenantID), ids)
		steps := make([][]turn.Step, len(ids))
		for i, id := range ids {
			steps[i] = append([]turn.Step{}, byID[id]...)
		}
		return steps, err
	})
}
