package tenant

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/retention"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// SetRetention answers Mutation.setRetention.
func SetRetention(env *handler.Env) lambda.Handler {
	db := env.DB()
	type args struct {
		Input retention.Change `json:"input"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (p retention.Policy, err error) {
		caller, err := tenant.OwnerOrAdmin(ctx)
		if err != nil {
			return retention.Policy{}, err
		}
		err = db.InTenant(ctx, caller.TenantID, func(tx pgx.Tx) (err error) {
			p, err = retention.Set(ctx, tx, caller.TenantID, a.Input)
			return err
		})
		return p, err
	})
}
