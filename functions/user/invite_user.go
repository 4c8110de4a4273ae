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
	type args struct {
		Input user.Invitation `json:"input"`
	}
	operators := env.Operators()
	do := func(ctx context.Context, tx pgx.Tx, caller tenant.Caller, a args) (user.User, []audit.Event, error) {
		if _, err := operators.Check(ctx); err != nil && operators.Has(a.Input.Email) {
			return user.User{}, nil, user.ErrTaken // only an operator brings an operator into a tenant
		}
		return user.Invite(ctx, tx, caller, a.Input)
	}
	return handler.Resolver(acting(env.DB(), env.Outbox(), do, env.Identity().Invite))
}
