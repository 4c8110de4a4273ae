package user

import (
	"context"
	"log/slog"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/connection"
	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/user"
)

// DeleteUser answers Mutation.deleteUser. The user's connections are of no use from then on; what is left of them if their tokens cannot be deleted now, admins
// see and delete.
func DeleteUser(env *handler.Env) lambda.Handler {
	do := func(ctx context.Context, tx pgx.Tx, caller tenant.Caller, l leaver) (user.User, []audit.Event, error) {
		return user.Delete(ctx, tx, caller, l.ID, l.Reason)
	}
	directory := env.Identity()
	deletion := acting(env.DB(), env.Outbox(), do, unlessOperator(env.Operators(), directory.Delete, directory.SignOut))
	connections := connection.New(env.DB(), env.ConnectionSecrets(), connection.NewClients(env.DB(), env.IntegrationSecretsReader()), env.Egress())
	return handler.Resolver(func(ctx context.Context, l leaver) (user.User, error) {
		u, err := deletion(ctx, l)
		if err != nil {
			return u, err
		}
		caller, err := tenant.From(ctx)
		if err == nil {
			err = connections.Leave(ctx, caller.TenantID, u.ID)
		}
		if err != nil {
			slog.Error("connections of a deleted user are left", "tenant_id", caller.TenantID, "user_id", u.ID, "error", err)
		}
		return u, nil
	})
}
