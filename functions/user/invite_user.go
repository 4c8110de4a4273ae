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

// InviteUser answers Mutation.inviteUser.
func InviteUser(env *handler.Env) lambda.Handler {
	db, o, directory := env.DB(), env.Outbox(), env.Identity()
	type args struct {
		Input user.Invitation `json:"input"`
	}
	return handler.Resolver(func(ctx context.Context, a args) (invited user.User, err error) {
		caller, err := tenant.OwnerOrAdmin(ctx)
		if err != nil {
			return user.User{}, err
		}
		err = o.InTenant(ctx, db, caller.TenantID, func(tx pgx.Tx) error {
			var events []audit.Event
			if invited, events, err = user.Invite(ctx, tx, caller, a.Input); err != nil {
				return err
			}
			if err := o.RecordAll(ctx, tx, events); err != nil {
				return err
			}
			return directory.Invite(ctx, invited.Email)
		})
		return invited, err
	})
}
