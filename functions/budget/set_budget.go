package budget

import (
	"context"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/budget"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// SetBudget answers Mutation.setBudget.
func SetBudget(env *handler.Env) lambda.Handler {
	db := env.DB()
	type args struct {
		Input budget.Change `json:"input"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (b *budget.Budget, err error) {
		caller, err := tenant.OwnerOrAdmin(ctx)
		if err != nil {
			return nil, err
		}
		err = db.InTenant(ctx, caller.TenantID, func(tx pgx.Tx) (err error) {
			b, err = budget.Set(ctx, tx, caller.TenantID, a.Input, time.Now())
			return err
		})
		return b, err
	})
}
