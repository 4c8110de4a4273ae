package turn

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// DenyToolCall answers Mutation.denyToolCall: it refuses one.
func DenyToolCall(env *handler.Env) lambda.Handler {
	type args struct {
		TurnID     string  `json:"turnId"`
		ToolCallID string  `json:"toolCallId"`
		Reason     *string `json:"reason"`
	}
	p := person{db: env.DB(), to: env.Publish(), dispatch: env.Invoke("dispatch-turn"), signal: env.Signal()}
	return handler.Resolver(decision(p, func(ctx context.Context, tx pgx.Tx, caller tenant.Caller, a args) (turn.Decided, error) {
		return turn.Decide(ctx, tx, caller.TenantID, turn.Decision{TurnID: a.TurnID, ToolCallID: a.ToolCallID, Reason: a.Reason, UserID: caller.UserID})
	}))
}
