package integration

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/integration"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// CreateIntegration answers Mutation.createIntegration.
func CreateIntegration(env *handler.Env) lambda.Handler {
	integrations, domain := integration.Open(env.DB(), env.IntegrationSecrets(), env.Egress()), env.MailDomain()
	type args struct {
		Input struct {
			integration.New
			ClientToken *string `json:"clientToken"`
		} `json:"input"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (integration.Integration, error) {
		caller, err := tenant.OwnerOrAdmin(ctx)
		if err != nil {
			return integration.Integration{}, err
		}
		if a.Input.Provider == integration.Email && domain == "" {
			return integration.Integration{}, fault.Invalid("provider email is not for this deployment, which receives no mail")
		}
		i, err := integrations.Create(ctx, caller, a.Input.New, a.Input.ClientToken)
		return shown(i, domain), err
	})
}

// shown is an integration with its whole address.
func shown(i integration.Integration, domain string) integration.Integration {
	if i.Address != nil {
		i.Address = new(*i.Address + "@" + domain)
	}
	return i
}
