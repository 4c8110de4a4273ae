package tool

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/toolserver"
)

// RemoveToolServer answers Mutation.removeToolServer.
func RemoveToolServer(env *handler.Env) lambda.Handler {
	o, servers := env.Outbox(), toolserver.New(env.DB(), env.ToolSecrets(), env.Egress())
	type args struct {
		ID string `json:"id"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (toolserver.Server, error) {
		caller, err := tenant.OwnerOrAdmin(ctx)
		if err != nil {
			return toolserver.Server{}, err
		}
		return servers.Remove(ctx, o, caller.TenantID, a.ID)
	})
}
