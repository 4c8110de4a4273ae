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
	p := person{env.DB(), env.Publish(), env.Invoke("dispatch-turn"), env.Signal()}
	type args struct {
		TurnID     string  `json:"turnId"`
		ToolCallID string  `json:"toolCallId"`
		Reason     *string `json:"reason"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (turn.Turn, error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return turn.Turn{}, err
		}
		return p.decides(ctx, caller.TenantID, func(tx pgx.Tx) (turn.Decided, error) {
			return turn.Decide(ctx, tx, caller.TenantID, turn.Decision{TurnID: a.TurnID, ToolCallID: a.ToolCallID, Reason: a.Reason, UserID: caller.UserID})
		})
	})
}
