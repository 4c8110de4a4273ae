package tool

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/toolserver"
)

// UpdateToolServer answers Mutation.updateToolServer.
func UpdateToolServer(env *handler.Env) lambda.Handler {
	o, servers := env.Outbox(), toolserver.New(env.DB(), env.ToolSecrets(), env.Egress())
	type args struct {
		ID    string              `json:"id"`
		Input toolserver.Settings `json:"input"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (toolserver.Server, error) {
		caller, err := tenant.OwnerOrAdmin(ctx)
		if err != nil {
			return toolserver.Server{}, err
		}
		s, relist, err := servers.Update(ctx, o, caller.TenantID, a.ID, a.Input)
		if err != nil || !relist {
			return s, err
		}
		return listed(ctx, servers, caller, s), nil
	})
}
