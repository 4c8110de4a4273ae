package agent

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/agent"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// AgentTemplate answers Agent.template for a list of agents.
func AgentTemplate(env *handler.Env) lambda.Handler {
	db := env.DB()
	type source struct {
		TemplateID string `json:"templateId"`
	}
	return handler.Batch(func(ctx context.Context, agents []source, _ struct{}) ([]*agent.Template, error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return nil, err
		}
		ids := make([]string, len(agents))
		for i, a := range agents {
			ids[i] = a.TemplateID
		}
		byID, err := agent.Templates(ctx, db.In(caller.TenantID), ids)
		return handler.Join(ids, byID), err
	})
}
