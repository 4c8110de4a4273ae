package agent

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/agent"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// GetAgentTemplate answers Query.getAgentTemplate.
func GetAgentTemplate(env *handler.Env) lambda.Handler {
	db := env.DB()
	type args struct {
		ID string `json:"id"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (agent.Template, error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return agent.Template{}, err
		}
		return agent.GetTemplate(ctx, db.In(caller.TenantID), a.ID)
	})
}
