package turn

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/callback"
	"github.com/agentplatform/agentplatform/pkg/evaluator"
	"github.com/agentplatform/agentplatform/pkg/guardrail"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tool"
	"github.com/agentplatform/agentplatform/pkg/toolserver"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// DispatchTurn gives one turn to its runtime, or takes it to its end itself.
func DispatchTurn(env *handler.Env) lambda.Handler {
	db, outside, dispatch, evaluate := env.DB(), env.Egress(), env.Invoke("dispatch-turn"), env.Invoke("evaluate-turn")
	runner := turn.NewRunner(db, env.Model(), env.Publish(), func(ctx context.Context, tenantID, turnID string) error {
		return dispatch(ctx, turn.Dispatch{TenantID: tenantID, TurnID: turnID})
	}, tool.RunCode(env.Sandbox()), tool.HTTPFetch(db, outside))
	runner.Servers = toolserver.New(db, env.ToolSecrets(), outside)
	runner.Guard = guardrail.Checker{Bedrock: env.Guardrail()}
	runner.Evaluate = func(ctx context.Context, t evaluator.Task) error { return evaluate(ctx, t) }
	runner.Tools = runner.Tools.With([]tool.Tool{tool.StartRoutine(env.Call("start-run"))})
	if env.MailFrom() != "" {
		runner.Tools = runner.Tools.With([]tool.Tool{tool.SendEmail(db, env.Call("send-mail"))})
	}
	answer, summarize, reply := env.Invoke("answer-callbacks"), env.Invoke("summarize-thread"), env.Invoke("deliver-replies")
	runner.Answer = func(ctx context.Context, tenantID, callbackID string) error {
		return answer(ctx, callback.Task{TenantID: tenantID, CallbackID: callbackID})
	}
	runner.Summarize = func(ctx context.Context, t turn.SummaryTask) error { return summarize(ctx, t) }
	runner.Reply = func(ctx context.Context, tenantID, threadUUID string) error {
		return reply(ctx, turn.ReplyTask{TenantID: tenantID, ThreadUUID: threadUUID})
	}
	runner.Signal = env.Signal()
	dispatcher := &turn.Dispatcher{Runner: runner, Runtimes: env.Runtimes()}
	return handler.Task(dispatcher.Dispatch)
}
