package integration

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/integration"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// UpdateIntegration answers Mutation.updateIntegration.
func UpdateIntegration(env *handler.Env) lambda.Handler {
	integrations, domain := integration.Open(env.DB(), env.IntegrationSecrets(), env.Egress()), env.MailDomain()
	type args struct {
		ID    string               `json:"id"`
		Input integration.Settings `json:"input"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (integration.Integration, error) {
		caller, err := tenant.OwnerOrAdmin(ctx)
		if err != nil {
			return integration.Integration{}, err
		}
		i, err := integrations.Update(ctx, caller.TenantID, a.ID, a.Input)
		return shown(i, domain), err
	})
}
