package turn

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// RetryTurn answers Mutation.retryTurn: it answers again what a turn did not.
func RetryTurn(env *handler.Env) lambda.Handler {
	p := person{env.DB(), env.Publish(), env.Invoke("dispatch-turn"), env.Signal()}
	type args struct {
		ID string `json:"id"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (turn.Turn, error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return turn.Turn{}, err
		}
		return p.decides(ctx, caller.TenantID, func(tx pgx.Tx) (turn.Decided, error) {
			return turn.Retry(ctx, tx, caller.TenantID, a.ID)
		})
	})
}
