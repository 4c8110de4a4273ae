package evaluation

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/evaluation"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// EvaluationRunResults answers EvaluationRun.results for a list of runs. A token belongs to one of them.
func EvaluationRunResults(env *handler.Env) lambda.Handler {
	db, key := env.DB(), env.PageKey()
	type args struct {
		page.Request
		Status *evaluation.ResultStatus `json:"status"`
	}
	return handler.Batch(func(ctx context.Context, runs []source, a args) ([]page.Page[evaluation.Result], error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return nil, err
		}
		return page.Nested(key, a.Request, runs, evaluation.Result.Cursor, func(after *evaluation.ResultCursor, limit int) (map[string][]evaluation.Result, error) {
			return evaluation.Results(ctx, db.In(caller.TenantID), ids(runs), a.Status, after, limit)
		}, func(s source) (string, []any) {
			return s.ID, []any{caller.TenantID, "results", s.ID, a.Status}
		})
	})
}
