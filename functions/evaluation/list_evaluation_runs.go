package evaluation

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/evaluation"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// ListEvaluationRuns answers Query.listEvaluationRuns.
func ListEvaluationRuns(env *handler.Env) lambda.Handler {
	db, key := env.DB(), env.PageKey()
	type args struct {
		EvaluationID string `json:"evaluationId"`
		page.Request
	}
	return handler.Resolver(func(ctx context.Context, a args) (page.Page[evaluation.Run], error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return page.Page[evaluation.Run]{}, err
		}
		e, err := evaluation.Get(ctx, db.In(caller.TenantID), a.EvaluationID)
		if err != nil {
			return page.Page[evaluation.Run]{}, err
		}
		return page.List(key, a.Request, evaluation.Run.Cursor, func(after *evaluation.RunCursor, limit int) ([]evaluation.Run, error) {
			return evaluation.Runs(ctx, db.In(caller.TenantID), e.ID, after, limit)
		}, caller.TenantID, "listEvaluationRuns", e.ID)
	})
}
