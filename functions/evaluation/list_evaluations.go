package evaluation

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/evaluation"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// ListEvaluations answers Query.listEvaluations.
func ListEvaluations(env *handler.Env) lambda.Handler {
	db, key := env.DB(), env.PageKey()
	return handler.Resolver(func(ctx context.Context, a page.Request) (page.Page[evaluation.Evaluation], error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return page.Page[evaluation.Evaluation]{}, err
		}
		return page.List(key, a, evaluation.Evaluation.Cursor, func(after *evaluation.Cursor, limit int) ([]evaluation.Evaluation, error) {
			return evaluation.List(ctx, db.In(caller.TenantID), after, limit)
		}, caller.TenantID, "listEvaluations")
	})
}
