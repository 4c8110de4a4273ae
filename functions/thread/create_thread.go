package thread

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/clienttoken"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/thread"
)

// CreateThread answers Mutation.createThread.
func CreateThread(env *handler.Env) lambda.Handler {
	db := env.DB()
	type args struct {
		Input struct {
			thread.New
			ClientToken *string `json:"clientToken"`
		} `json:"input"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (created thread.Thread, err error) {
		caller, err := tenant.From(ctx)
		if err != nil {
			return thread.Thread{}, err
		}
		err = db.InTenant(ctx, caller.TenantID, func(tx pgx.Tx) error {
			created, _, err = clienttoken.Once(ctx, tx, caller, "createThread", a.Input.ClientToken, a.Input.New, func() (thread.Thread, error) {
				return thread.Create(ctx, tx, caller.TenantID, a.Input.New)
			})
			return err
		})
		return created, err
	})
}
