package thread

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/agentplatform/agentplatform/pkg/agent"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// ThreadAgent answers Thread.agent for a list of threads.
func ThreadAgent(env *handler.Env) lambda.Handler {
	db := env.DB()
	type source struct {
		AgentID string `json:"agentId"`
	}
	return handler.Batch(func(ctx context.Context, threads []source, _ struct{}) ([]*agent.Agent, error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return nil, err
		}
		ids := make([]string, len(threads))
		for i, t := range threads {
			ids[i] = t.AgentID
		}
		byID, err := agent.ByIDs(ctx, db.In(caller.TenantID), ids)
		return handler.Join(ids, byID), err
	})
}
