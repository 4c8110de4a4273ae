package evaluation

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/evaluation"
	"github.com/agentplatform/agentplatform/pkg/evaluator/grade"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// RunEvaluation works on one run of an evaluation; called on time, it finds the runs that nobody works on.
func RunEvaluation(env *handler.Env) lambda.Handler {
	dispatch, again := env.Invoke("dispatch-turn"), env.Invoke("run-evaluation")
	runner := &evaluation.Runner{DB: env.DB(), Grader: grade.New(env.Model()), Publish: env.Publish(), Signal: env.Signal(),
		Dispatch: func(ctx context.Context, tenantID, turnID string) error {
			return dispatch(ctx, turn.Dispatch{TenantID: tenantID, TurnID: turnID})
		},
		Again: func(ctx context.Context, j evaluation.Job) error { return again(ctx, j) }}
	return handler.Task(runner.Run)
}
