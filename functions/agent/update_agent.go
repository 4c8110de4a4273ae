package agent

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/agent"
	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/audit/outbox"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// UpdateAgent answers Mutation.updateAgent.
func UpdateAgent(env *handler.Env) lambda.Handler {
	db, o := env.DB(), env.Outbox()
	type args struct {
		ID    string       `json:"id"`
		Input agent.Fields `json:"input"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (agent.Agent, error) {
		caller, err := tenant.OwnerOrAdmin(ctx)
		if err != nil {
			return agent.Agent{}, err
		}
		if err := checkEvaluators(a.Input.SettingFields); err != nil {
			return agent.Agent{}, err
		}
		return outbox.Act(ctx, o, db, caller.TenantID, func(tx pgx.Tx) (agent.Agent, []audit.Event, error) {
			return agent.Update(ctx, tx, a.ID, a.Input)
		})
	})
}
