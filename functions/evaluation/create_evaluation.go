package evaluation

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/evaluation"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// CreateEvaluation answers Mutation.createEvaluation.
func CreateEvaluation(env *handler.Env) lambda.Handler {
	db := env.DB()
	type args struct {
		Input evaluation.Fields `json:"input"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (e evaluation.Evaluation, err error) {
		caller, err := tenant.OwnerOrAdmin(ctx)
		if err != nil {
			return e, err
		}
		err = db.InTenant(ctx, caller.TenantID, func(tx pgx.Tx) (err error) {
			e, err = evaluation.Create(ctx, tx, caller.TenantID, a.Input)
			return err
		})
		return e, err
	})
}
