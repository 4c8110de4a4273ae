package tool

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/toolserver"
)

// RefreshToolServer answers Mutation.refreshToolServer.
func RefreshToolServer(env *handler.Env) lambda.Handler {
	servers := toolserver.New(env.DB(), env.ToolSecrets(), env.Egress())
	type args struct {
		ID string `json:"id"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (toolserver.Server, error) {
		caller, err := tenant.OwnerOrAdmin(ctx)
		if err != nil {
			return toolserver.Server{}, err
		}
		ctx, cancel := context.WithTimeout(ctx, listTime)
		defer cancel()
		return servers.Refresh(ctx, caller.TenantID, a.ID, caller.UserID)
	})
}
