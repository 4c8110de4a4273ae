package routine

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/callback"
	"github.com/agentplatform/agentplatform/pkg/guardrail"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/routine/step"
	"github.com/agentplatform/agentplatform/pkg/tool"
	"github.com/agentplatform/agentplatform/pkg/toolserver"
)

// CallTool does a step of a routine that calls a tool, or sends a mail; called on time, it has those done that nobody works on.
func CallTool(env *handler.Env) lambda.Handler {
	db, outside, answer, again := env.DB(), env.Egress(), env.Invoke("answer-callbacks"), env.Invoke("call-tool")
	courier := &callback.Courier{DB: db, Tasks: env.Tasks()}
	c := &step.Caller{
		DB: db, Tools: tool.Of(tool.ReadThread(db), tool.AskUser(), tool.RunCode(env.Sandbox()), tool.HTTPFetch(db, outside)),
		Servers: toolserver.New(db, env.ToolSecrets(), outside), Guard: guardrail.Checker{Bedrock: env.Guardrail()},
		Ask:    courier.Deliver,
		Answer: func(ctx context.Context, t callback.Task) error { return answer(ctx, t) },
		Again:  func(ctx context.Context, w step.Work) error { return again(ctx, w) },
		Signal: env.Signal(),
	}
	if env.MailFrom() != "" {
		c.Send = env.Call("send-mail")
		c.Tools = c.Tools.With([]tool.Tool{tool.SendEmail(db, c.Send)})
	}
	return handler.Task(c.Do)
}
