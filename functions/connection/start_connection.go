package connection

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/connection"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// StartConnection answers Mutation.startConnection.
func StartConnection(env *handler.Env) lambda.Handler {
	clients := connection.NewClients(env.DB(), env.IntegrationSecretsReader())
	type args struct {
		Input connection.Beginning `json:"input"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (connection.Begun, error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return connection.Begun{}, err
		}
		return clients.Start(ctx, caller, a.Input)
	})
}
