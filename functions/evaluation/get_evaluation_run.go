package evaluation

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/evaluation"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// GetEvaluationRun answers Query.getEvaluationRun.
func GetEvaluationRun(env *handler.Env) lambda.Handler {
	db := env.DB()
	type args struct {
		ID string `json:"id"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (evaluation.Run, error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return evaluation.Run{}, err
		}
		return evaluation.GetRun(ctx, db.In(caller.TenantID), a.ID)
	})
}
