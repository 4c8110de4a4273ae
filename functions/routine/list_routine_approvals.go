package routine

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/routine/step"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// ListRoutineApprovals answers Query.listRoutineApprovals: what waits for a person, the oldest first.
func ListRoutineApprovals(env *handler.Env) lambda.Handler {
	db, key := env.DB(), env.PageKey()
	return handler.Resolver(func(ctx context.Context, a page.Request) (page.Page[step.Approval], error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return page.Page[step.Approval]{}, err
		}
		return page.List(key, a, step.Approval.Cursor, func(after *step.ApprovalCursor, limit int) ([]step.Approval, error) {
			return step.Approvals(ctx, db.In(caller.TenantID), after, limit)
		}, caller.TenantID, "routine approvals")
	})
}
