package identity

import (
	"context"
	"log/slog"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/user"
)

// SignOut answers Mutation.signOut.
func SignOut(env *handler.Env) lambda.Handler {
	db, o, directory, operators := env.DB(), env.Outbox(), env.Identity(), env.Operators()
	return handler.Resolver(func(ctx context.Context, _ struct{}) (bool, error) {
		if c, err := operators.Check(ctx); err == nil && c.TenantID == "" { // there is no tenant whose log would be the place for it
			slog.InfoContext(ctx, "a platform operator signed out", "operator", c.Email)
			err := directory.SignOut(ctx, c.Email)
			return err == nil, err
		}
		caller, err := tenant.From(ctx)
		if err != nil {
			return false, err
		}
		err = o.InTenant(ctx, db, caller.TenantID, func(tx pgx.Tx) error {
			if err := o.Record(ctx, tx, user.SignOut(caller)); err != nil {
				return err
			}
			return directory.SignOut(ctx, caller.Email)
		})
		return err == nil, err
	})
}
