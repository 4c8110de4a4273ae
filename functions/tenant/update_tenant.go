package tenant

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/user"
)

// UpdateTenant answers Mutation.updateTenant. The tenant is the operator's argument, for operators belong to none.
func UpdateTenant(env *handler.Env) lambda.Handler {
	db, operators := env.DB(), env.Operators()
	type args struct {
		ID    string            `json:"id"`
		Input user.TenantChange `json:"input"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (changed user.Tenant, err error) {
		if _, err := operators.Check(ctx); err != nil {
			return user.Tenant{}, err
		}
		if !ident.Valid(a.ID) {
			return user.Tenant{}, fault.Missing("tenant")
		}
		err = db.InTenant(ctx, a.ID, func(tx pgx.Tx) error {
			changed, err = user.UpdateTenant(ctx, tx, a.Input)
			return err
		})
		return changed, err
	})
}
