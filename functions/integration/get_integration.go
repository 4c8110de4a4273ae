package integration

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/integration"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// GetIntegration answers Query.getIntegration.
func GetIntegration(env *handler.Env) lambda.Handler {
	db, domain := env.DB(), env.MailDomain()
	type args struct {
		ID string `json:"id"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (integration.Integration, error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return integration.Integration{}, err
		}
		i, err := integration.Get(ctx, db.In(caller.TenantID), a.ID)
		return shown(i, domain), err
	})
}
