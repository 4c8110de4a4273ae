package evaluation

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/evaluation"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// DeleteEvaluation answers Mutation.deleteEvaluation.
func DeleteEvaluation(env *handler.Env) lambda.Handler {
	db := env.DB()
	type args struct {
		ID string `json:"id"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (e evaluation.Evaluation, err error) {
		caller, err := tenant.OwnerOrAdmin(ctx)
		if err != nil {
			return e, err
		}
		err = db.InTenant(ctx, caller.TenantID, func(tx pgx.Tx) (err error) {
			e, err = evaluation.Delete(ctx, tx, a.ID)
			return err
		})
		return e, err
	})
}
