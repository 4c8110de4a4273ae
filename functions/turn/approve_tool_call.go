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
	type args struct {
		TurnID     string `json:"turnId"`
		ToolCallID string `json:"toolCallId"`
	}
	p := person{db: env.DB(), to: env.Publish(), dispatch: env.Invoke("dispatch-turn"), signal: env.Signal()}
	return handler.Resolver(decision(p, func(ctx context.Context, tx pgx.Tx, caller tenant.Caller, a args) (turn.Decided, error) {
		return turn.Decide(ctx, tx, caller.TenantID, turn.Decision{TurnID: a.TurnID, ToolCallID: a.ToolCallID, Approve: true, UserID: caller.UserID})
	}))
}
