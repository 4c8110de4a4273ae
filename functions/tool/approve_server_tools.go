package tool

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/toolserver"
)

// ApproveServerTools answers Mutation.approveServerTools.
func ApproveServerTools(env *handler.Env) lambda.Handler {
	db := env.DB()
	type args struct {
		ID    string            `json:"id"`
		Tools []toolserver.Seen `json:"tools"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (s toolserver.Server, err error) {
		caller, err := tenant.OwnerOrAdmin(ctx)
		if err != nil {
			return s, err
		}
		err = db.InTenant(ctx, caller.TenantID, func(tx pgx.Tx) error {
			s, err = toolserver.Approve(ctx, tx, a.ID, caller.UserID, a.Tools)
			return err
		})
		return s, err
	})
}
