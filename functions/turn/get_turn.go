package turn

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// GetTurn answers Query.turn.
func GetTurn(env *handler.Env) lambda.Handler {
	db := env.DB()
	type args struct {
		ID string `json:"id"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (turn.Turn, error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return turn.Turn{}, err
		}
		return turn.Get(ctx, db.In(caller.TenantID), a.ID)
	})
}
