package turn

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// CancelTurn answers Mutation.cancelTurn: it ends a turn.
func CancelTurn(env *handler.Env) lambda.Handler {
	type args struct {
		ID string `json:"id"`
	}
	p := person{db: env.DB(), to: env.Publish(), dispatch: env.Invoke("dispatch-turn"), answer: env.Invoke("answer-callbacks"), signal: env.Signal()}
	return handler.Resolver(decision(p, func(ctx context.Context, tx pgx.Tx, caller tenant.Caller, a args) (turn.Decided, error) {
		return turn.Cancel(ctx, tx, caller.TenantID, a.ID)
	}))
}
