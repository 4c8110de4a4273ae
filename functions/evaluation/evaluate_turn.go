package evaluation

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/evaluation"
	"github.com/agentplatform/agentplatform/pkg/evaluator"
	"github.com/agentplatform/agentplatform/pkg/evaluator/grade"
	"github.com/agentplatform/agentplatform/pkg/handler"
)

// EvaluateTurn rates one turn by its agent's evaluators; called on time, it finds the turns that nobody has rated.
func EvaluateTurn(env *handler.Env) lambda.Handler {
	again := env.Invoke("evaluate-turn")
	scorer := &evaluation.Scorer{DB: env.DB(), Grader: grade.New(env.Model()), Signal: env.Signal(),
		Again: func(ctx context.Context, t evaluator.Task) error { return again(ctx, t) }}
	return handler.Task(scorer.Score)
}
