package evaluation

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/evaluation"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// EvaluationCases answers Evaluation.cases for a list of evaluations. A token belongs to one of them.
func EvaluationCases(env *handler.Env) lambda.Handler {
	db, key := env.DB(), env.PageKey()
	return handler.Batch(func(ctx context.Context, evaluations []source, a page.Request) ([]page.Page[evaluation.Case], error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return nil, err
		}
		return page.Nested(key, a, evaluations, evaluation.Case.Cursor, func(after *evaluation.CaseCursor, limit int) (map[string][]evaluation.Case, error) {
			return evaluation.Cases(ctx, db.In(caller.TenantID), ids(evaluations), after, limit)
		}, func(s source) (string, []any) {
			return s.ID, []any{caller.TenantID, "cases", s.ID}
		})
	})
}
