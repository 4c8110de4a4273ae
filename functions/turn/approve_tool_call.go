package turn

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// ApproveToolCall answers Mutation.approveToolCall: it lets a call run that a person must approve.
func ApproveToolCall(env *handler.Env) lambda.Handler {
	p := person{env.DB(), env.Publish(), env.Invoke("dispatch-turn"), env.Signal()}
	type args struct {
		TurnID     string `json:"turnId"`
		ToolCallID string `json:"toolCallId"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (turn.Turn, error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return turn.Turn{}, err
		}
		return p.decides(ctx, caller.TenantID, func(tx pgx.Tx) (turn.Decided, error) {
			return turn.Decide(ctx, tx, caller.TenantID, turn.Decision{TurnID: a.TurnID, ToolCallID: a.ToolCallID, Approve: true, UserID: caller.UserID})
		})
	})
}
