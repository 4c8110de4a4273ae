package turn

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// DispatchTurn gives one turn to its runtime, or takes it to its end itself.
func DispatchTurn(env *handler.Env) lambda.Handler {
	dispatch := env.Invoke("dispatch-turn")
	runner := turn.NewRunner(env.DB(), env.Model(), env.Publish(), func(ctx context.Context, tenantID, turnID string) error {
		return dispatch(ctx, turn.Dispatch{TenantID: tenantID, TurnID: turnID})
	})
	runner.Signal = env.Signal()
	dispatcher := &turn.Dispatcher{Runner: runner, Runtimes: env.Runtimes()}
	return handler.Task(dispatcher.Dispatch)
}
