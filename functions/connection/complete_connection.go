package connection

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/connection"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// CompleteConnection answers Mutation.completeConnection.
func CompleteConnection(env *handler.Env) lambda.Handler {
	connections := connection.New(env.DB(), env.ConnectionSecrets(), connection.NewClients(env.DB(), env.IntegrationSecretsReader()), env.Egress())
	type args struct {
		Input connection.Return `json:"input"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (connection.Connection, error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return connection.Connection{}, err
		}
		return connections.Complete(ctx, caller, a.Input)
	})
}
