package integration

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/integration"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// DeleteIntegration answers Mutation.deleteIntegration.
func DeleteIntegration(env *handler.Env) lambda.Handler {
	db, secrets, domain := env.DB(), env.IntegrationSecrets(), env.MailDomain()
	type args struct {
		ID string `json:"id"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (integration.Integration, error) {
		caller, err := tenant.OwnerOrAdmin(ctx)
		if err != nil {
			return integration.Integration{}, err
		}
		i, err := integration.Delete(ctx, db, secrets, caller.TenantID, a.ID)
		return shown(i, domain), err
	})
}
