package evaluation

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/evaluation"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// GetEvaluation answers Query.getEvaluation.
func GetEvaluation(env *handler.Env) lambda.Handler {
	db := env.DB()
	type args struct {
		ID string `json:"id"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (evaluation.Evaluation, error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return evaluation.Evaluation{}, err
		}
		return evaluation.Get(ctx, db.In(caller.TenantID), a.ID)
	})
}
