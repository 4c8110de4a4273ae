package agent

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/agent"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// ListAgentTemplates answers Query.listAgentTemplates.
func ListAgentTemplates(env *handler.Env) lambda.Handler {
	db, key := env.DB(), env.PageKey()
	return handler.Resolver(func(ctx context.Context, a page.Request) (page.Page[agent.Template], error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return page.Page[agent.Template]{}, err
		}
		return page.List(key, a, agent.Template.Cursor, func(after *agent.Cursor, limit int) ([]agent.Template, error) {
			return agent.ListTemplates(ctx, db.In(caller.TenantID), after, limit)
		}, caller.TenantID, "listAgentTemplates")
	})
}
