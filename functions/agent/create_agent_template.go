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

// CreateAgentTemplate answers Mutation.createAgentTemplate.
func CreateAgentTemplate(env *handler.Env) lambda.Handler {
	db := env.DB()
	type args struct {
		Input struct {
			agent.TemplateFields
			ClientToken *string `json:"clientToken"`
		} `json:"input"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (created agent.Template, err error) {
		caller, err := tenant.OwnerOrAdmin(ctx)
		if err != nil {
			return agent.Template{}, err
		}
		if err := checkEvaluators(a.Input.SettingFields); err != nil {
			return agent.Template{}, err
		}
		err = db.InTenant(ctx, caller.TenantID, func(tx pgx.Tx) error {
			created, _, err = clienttoken.Once(ctx, tx, caller, "createAgentTemplate", a.Input.ClientToken, a.Input.TemplateFields, func() (agent.Template, error) {
				return agent.CreateTemplate(ctx, tx, caller.TenantID, a.Input.TemplateFields)
			})
			return err
		})
		return created, err
	})
}
