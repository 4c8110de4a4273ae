package tool

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/audit/outbox"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/tool"
)

// RemoveToolServer answers Mutation.removeToolServer.
func RemoveToolServer(env *handler.Env) lambda.Handler {
	db, o := env.DB(), env.Outbox()
	type args struct {
		ID string `json:"id"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (tool.Server, error) {
		caller, err := tenant.OwnerOrAdmin(ctx)
		if err != nil {
			return tool.Server{}, err
		}
		return outbox.Act(ctx, o, db, caller.TenantID, func(tx pgx.Tx) (tool.Server, []audit.Event, error) {
			return tool.RemoveServer(ctx, tx, a.ID)
		})
	})
}
