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

// DeleteAgent answers Mutation.deleteAgent.
func DeleteAgent(env *handler.Env) lambda.Handler {
	db, o := env.DB(), env.Outbox()
	type args struct {
		ID     string  `json:"id"`
		Reason *string `json:"reason"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (deleted agent.Agent, err error) {
		caller, err := tenant.OwnerOrAdmin(ctx)
		if err != nil {
			return agent.Agent{}, err
		}
		err = o.InTenant(ctx, db, caller.TenantID, func(tx pgx.Tx) error {
			var events []audit.Event
			if deleted, events, err = agent.Delete(ctx, tx, a.ID, a.Reason); err != nil {
				return err
			}
			return o.RecordAll(ctx, tx, events)
		})
		return deleted, err
	})
}
