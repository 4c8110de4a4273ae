package evaluation

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/evaluation"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/notify"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// CancelEvaluationRun answers Mutation.cancelEvaluationRun.
func CancelEvaluationRun(env *handler.Env) lambda.Handler {
	db, to := env.DB(), env.Publish()
	type args struct {
		ID string `json:"id"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (r evaluation.Run, err error) {
		caller, err := tenant.OwnerOrAdmin(ctx)
		if err != nil {
			return r, err
		}
		var notices []notify.Notice
		err = db.InTenant(ctx, caller.TenantID, func(tx pgx.Tx) (err error) {
			r, notices, err = evaluation.Cancel(ctx, tx, caller.TenantID, a.ID)
			return err
		})
		if err == nil {
			notify.Deliver(ctx, db, to, caller.TenantID, notices...)
		}
		return r, err
	})
}
