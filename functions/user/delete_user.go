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
	do := func(ctx context.Context, tx pgx.Tx, caller tenant.Caller, l leaver) (user.User, []audit.Event, error) {
		return user.Delete(ctx, tx, caller, l.ID, l.Reason)
	}
	directory := env.Identity()
	return handler.Resolver(acting(env.DB(), env.Outbox(), do, unlessOperator(env.Operators(), directory.Delete, directory.SignOut)))
}
