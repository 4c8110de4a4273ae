package workflow

import (
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/callback"
	"github.com/agentplatform/agentplatform/pkg/handler"
)

// AnswerCallbacks tells the workflow engine of one callback that is due; called on time, of all that are, and that the others go on.
func AnswerCallbacks(env *handler.Env) lambda.Handler {
	courier := &callback.Courier{DB: env.DB(), Tasks: env.Tasks(), Signal: env.Signal()}
	return handler.Task(courier.Deliver)
}
