package turn

import (
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// SummarizeThread summarises a long thread's older messages, if they have not been.
func SummarizeThread(env *handler.Env) lambda.Handler {
	summarizer := &turn.Summarizer{DB: env.DB(), Model: env.Model(), Signal: env.Signal()}
	return handler.Task(summarizer.Summarize)
}
