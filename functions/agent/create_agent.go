package agent

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/agent"
	"github.com/agentplatform/agentplatform/pkg/clienttoken"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// CreateAgent answers Mutation.createAgent.
func CreateAgent(env *handler.Env) lambda.Handler {
	db, o := env.DB(), env.Outbox()
	type args struct {
		Input struct {
			agent.Fields
			ClientToken *string `json:"clientToken"`
		} `json:"input"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (created agent.Agent, err error) {
		caller, err := tenant.OwnerOrAdmin(ctx)
		if err != nil {
			return agent.Agent{}, err
		}
		if err := checkEvaluators(a.Input.SettingFields); err != nil {
			return agent.Agent{}, err
		}
		err = o.InTenant(ctx, db, caller.TenantID, func(tx pgx.Tx) error {
			var repeated bool
			created, repeated, err = clienttoken.Once(ctx, tx, caller, "createAgent", a.Input.ClientToken, a.Input.Fields, func() (agent.Agent, error) {
				return agent.Create(ctx, tx, caller.TenantID, a.Input.Fields)
			})
			if err != nil || repeated {
				return err
			}
			return o.Record(ctx, tx, created.Creation())
		})
		return created, err
	})
}
