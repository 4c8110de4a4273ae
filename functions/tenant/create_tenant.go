package tenant

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/agent"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/user"
)

// CreateTenant answers Mutation.createTenant. What it records is in the new tenant's log, done by the operator.
func CreateTenant(env *handler.Env) lambda.Handler {
	db, o, operators, directory, model := env.DB(), env.Outbox(), env.Operators(), env.Identity(), env.DefaultModel()
	type args struct {
		Input struct {
			Slug       string `json:"slug"`
			Name       string `json:"name"`
			OwnerEmail string `json:"ownerEmail"`
		} `json:"input"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (created user.Tenant, err error) {
		caller, err := operators.Check(ctx)
		if err != nil {
			return user.Tenant{}, err
		}
		owner, err := user.CheckEmail("ownerEmail", a.Input.OwnerEmail)
		if err != nil {
			return user.Tenant{}, err
		}
		id := ident.New()
		err = o.InTenant(ctx, db, id, func(tx pgx.Tx) error {
			founding := user.Founding{TenantID: id, Slug: a.Input.Slug, Name: a.Input.Name, Agent: agent.Default{ModelID: model}}
			created, err = user.Open(ctx, tx, user.Opening{Founding: founding, Owner: owner, By: caller.Actor(), Outbox: o, Directory: directory})
			return err
		})
		return created, err
	})
}
