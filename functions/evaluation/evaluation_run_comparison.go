package evaluation

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/evaluation"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// EvaluationRunComparison answers EvaluationRun.comparison for a list of runs.
func EvaluationRunComparison(env *handler.Env) lambda.Handler {
	db := env.DB()
	return handler.Batch(func(ctx context.Context, runs []evaluation.Run, _ struct{}) ([]*evaluation.Comparison, error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return nil, err
		}
		comparisons := make([]*evaluation.Comparison, len(runs))
		for i, r := range runs {
			if comparisons[i], err = evaluation.Compare(ctx, db.In(caller.TenantID), r); err != nil {
				return nil, err
			}
		}
		return comparisons, nil
	})
}
