package agent

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/agent"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/page"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// ListAgents answers Query.listAgents.
func ListAgents(env *handler.Env) lambda.Handler {
	db, key := env.DB(), env.PageKey()
	type args struct {
		Filter struct {
			Status *agent.Status `json:"status"`
		} `json:"filter"`
		page.Request
	}
	return handler.Resolver(func(ctx context.Context, a args) (page.Page[agent.Agent], error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return page.Page[agent.Agent]{}, err
		}
		return page.List(key, a.Request, agent.Agent.Cursor, func(after *agent.Cursor, limit int) ([]agent.Agent, error) {
			return agent.List(ctx, db.In(caller.TenantID), a.Filter.Status, after, limit)
		}, caller.TenantID, "listAgents", a.Filter)
	})
}
