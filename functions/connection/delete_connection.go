package connection

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/connection"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// DeleteConnection answers Mutation.deleteConnection.
func DeleteConnection(env *handler.Env) lambda.Handler {
	connections := connection.New(env.DB(), env.ConnectionSecrets(), connection.NewClients(env.DB(), env.IntegrationSecretsReader()), env.Egress())
	type args struct {
		ID string `json:"id"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (connection.Connection, error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return connection.Connection{}, err
		}
		return connections.Delete(ctx, caller, a.ID)
	})
}
