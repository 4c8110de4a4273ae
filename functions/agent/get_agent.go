package agent

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/agent"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// GetAgent answers Query.getAgent.
func GetAgent(env *handler.Env) lambda.Handler {
	db := env.DB()
	type args struct {
		ID string `json:"id"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (agent.Agent, error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return agent.Agent{}, err
		}
		return agent.Get(ctx, db.In(caller.TenantID), a.ID)
	})
}
