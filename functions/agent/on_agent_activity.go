package agent

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/agent"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// OnAgentActivity answers Subscription.onAgentActivity with the filter of the events that the caller may receive.
func OnAgentActivity(env *handler.Env) lambda.Handler {
	db := env.DB()
	type args struct {
		AgentID string `json:"agentId"`
	}
	type filter struct {
		TenantID string `json:"tenantId"`
		AgentID  string `json:"agentId"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (filter, error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return filter{}, err
		}
		found, err := agent.Get(ctx, db.In(caller.TenantID), a.AgentID)
		return filter{caller.TenantID, found.ID}, err
	})
}
