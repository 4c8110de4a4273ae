package user

import (
	"context"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/user"
)

// DeleteUser answers Mutation.deleteUser.
func DeleteUser(env *handler.Env) lambda.Handler {
	db, o, directory := env.DB(), env.Outbox(), env.Identity()
	type args struct {
		ID     string  `json:"id"`
		Reason *string `json:"reason"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (deleted user.User, err error) {
		caller, err := tenant.OwnerOrAdmin(ctx)
		if err != nil {
			return user.User{}, err
		}
		err = o.InTenant(ctx, db, caller.TenantID, func(tx pgx.Tx) error {
			var events []audit.Event
			if deleted, events, err = user.Delete(ctx, tx, caller, a.ID, a.Reason); err != nil {
				return err
			}
			if err := o.RecordAll(ctx, tx, events); err != nil {
				return err
			}
			return directory.Delete(ctx, deleted.Email)
		})
		return deleted, err
	})
}
