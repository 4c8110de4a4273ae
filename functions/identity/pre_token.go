package identity

import (
	"context"
	"errors"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// PreToken maps a user to its tenant at login: the identity pool calls it before it issues tokens (pre-token generation, version 2), and
// the claims go into ID and access tokens alike. An unverified address maps to nothing, for its owner is not proven.
func PreToken(env *handler.Env) lambda.Handler {
	db := env.DB()
	return handler.Trigger(func(ctx context.Context, e events.CognitoEventUserPoolsPreTokenGenV2_0) (events.CognitoEventUserPoolsPreTokenGenV2_0, error) {
		email := e.Request.UserAttributes["email"]
		verified := e.Request.UserAttributes["email_verified"] == "true"
		claims := map[string]any{"email": email, "email_verified": verified}
		if verified {
			c, err := lookup(ctx, db.Unbound, email)
			if err != nil {
				return e, err
			}
			if c.TenantID != "" {
				claims["custom:tenant_id"], claims["custom:tenant_slug"] = c.TenantID, c.TenantSlug
				claims["custom:user_id"], claims["custom:role"] = c.UserID, string(c.Role)
			}
		}
		e.Response.ClaimsAndScopeOverrideDetails.IDTokenGeneration.ClaimsToAddOrOverride = claims
		e.Response.ClaimsAndScopeOverrideDetails.AccessTokenGeneration.ClaimsToAddOrOverride = claims
		return e, nil
	})
}

func lookup(ctx context.Context, unbound func(context.Context, func(pgx.Tx) error) error, email string) (c tenant.Caller, err error) {
	err = unbound(ctx, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `select tenant_id, tenant_slug, user_id, role from lookup_user($1)`, email).Scan(&c.TenantID, &c.TenantSlug, &c.UserID, &c.Role)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil // a token without a tenant
		}
		return err
	})
	return c, err
}
