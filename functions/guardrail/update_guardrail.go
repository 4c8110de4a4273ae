package guardrail

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/guardrail"
	"github.com/agentplatform/agentplatform/pkg/guardrail/store"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// UpdateGuardrail answers Mutation.updateGuardrail.
func UpdateGuardrail(env *handler.Env) lambda.Handler {
	db := env.DB()
	type args struct {
		ID    string       `json:"id"`
		Input store.Fields `json:"input"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (g guardrail.Guardrail, err error) {
		caller, err := tenant.OwnerOrAdmin(ctx)
		if err != nil {
			return g, err
		}
		err = db.InTenant(ctx, caller.TenantID, func(tx pgx.Tx) error {
			g, err = store.Update(ctx, tx, a.ID, a.Input)
			return err
		})
		return g, err
	})
}
