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

// UpdateAgentTemplate answers Mutation.updateAgentTemplate.
func UpdateAgentTemplate(env *handler.Env) lambda.Handler {
	db, o := env.DB(), env.Outbox()
	type args struct {
		ID    string               `json:"id"`
		Input agent.TemplateFields `json:"input"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (agent.Template, error) {
		caller, err := tenant.OwnerOrAdmin(ctx)
		if err != nil {
			return agent.Template{}, err
		}
		if err := checkEvaluators(a.Input.SettingFields); err != nil {
			return agent.Template{}, err
		}
		return outbox.Act(ctx, o, db, caller.TenantID, func(tx pgx.Tx) (agent.Template, []audit.Event, error) {
			return agent.UpdateTemplate(ctx, tx, a.ID, a.Input)
		})
	})
}
