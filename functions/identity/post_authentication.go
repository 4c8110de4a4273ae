package identity

import (
	"context"
	"log/slog"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/user"
)

// signedIn is the identity pool's event. Origin is the local pool's addition; in the cloud nobody can put it there, for the pool writes the event.
type signedIn struct {
	events.CognitoEventUserPoolsPostAuthentication
	Origin *user.Origin `json:"origin,omitempty"`
}

// PostAuthentication records a sign-in: the identity pool calls it when a password was right, before it issues tokens, and never when tokens are
// renewed. What cannot be recorded does not happen: the error refuses the sign-in. Somebody without a tenant has no log to be recorded in.
func PostAuthentication(env *handler.Env) lambda.Handler {
	db, o := env.DB(), env.Outbox()
	return handler.Trigger(func(ctx context.Context, e signedIn) (signedIn, error) {
		attributes := e.Request.UserAttributes
		if attributes["email_verified"] != "true" {
			slog.InfoContext(ctx, "signed in with an unverified address", "sub", e.UserName)
			return e, nil
		}
		c, err := lookup(ctx, db.Unbound, attributes["email"])
		if err != nil {
			return e, err
		}
		if c.TenantID == "" {
			slog.InfoContext(ctx, "signed in without a tenant", "sub", e.UserName)
			return e, nil
		}
		signIn := user.SignIn{TenantID: c.TenantID, UserID: c.UserID, Method: method(attributes)}
		if e.Origin != nil {
			signIn.Origin = *e.Origin
		}
		return e, o.InTenant(ctx, db, c.TenantID, func(tx pgx.Tx) error { return o.Record(ctx, tx, signIn.Succeeded()) })
	})
}

// method is how the user proved who it is: to this pool, or to another that this one trusts.
func method(attributes map[string]string) string {
	if attributes["cognito:user_status"] == "EXTERNAL_PROVIDER" {
		return "federated"
	}
	return "password"
}
