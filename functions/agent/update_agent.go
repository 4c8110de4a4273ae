package agent

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/agent"
	"github.com/agentplatform/agentplatform/pkg/audit"
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
	return handler.Resolver(func(ctx context.Context, a args) (updated agent.Agent, err error) {
		caller, err := tenant.OwnerOrAdmin(ctx)
		if err != nil {
			return agent.Agent{}, err
		}
		err = o.InTenant(ctx, db, caller.TenantID, func(tx pgx.Tx) error {
			var events []audit.Event
			if updated, events, err = agent.Update(ctx, tx, a.ID, a.Input); err != nil {
				return err
			}
			return o.RecordAll(ctx, tx, events)
		})
		return updated, err
	})
}
