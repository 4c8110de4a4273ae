package agent

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/agent"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// AgentSettings answers Agent.settings for a list of agents, which are known as they were answered: only their templates are read.
func AgentSettings(env *handler.Env) lambda.Handler {
	db := env.DB()
	return handler.Batch(func(ctx context.Context, agents []agent.Agent, _ struct{}) ([][]agent.Setting, error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return nil, err
		}
		ids := make([]string, len(agents))
		for i, a := range agents {
			ids[i] = a.TemplateID
		}
		templates, err := agent.Templates(ctx, db.In(caller.TenantID), ids)
		if err != nil {
			return nil, err
		}
		all := make([][]agent.Setting, len(agents))
		for i, a := range agents {
			if t, ok := templates[a.TemplateID]; ok {
				if all[i], err = agent.Settings(a, t); err != nil {
					return nil, err
				}
			}
		}
		return all, nil
	})
}
