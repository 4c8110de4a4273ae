package identity

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/text"
	"github.com/agentplatform/agentplatform/pkg/user"
)

// SignInFailed records a sign-in that the identity pool refused, in the tenant of the address, whether or not its user may sign in. An address
// of nobody has no tenant: it goes to the log, without what is before the @, for people put passwords there.
func SignInFailed(env *handler.Env) lambda.Handler {
	db, o := env.DB(), env.Outbox()
	type payload struct {
		Email  string `json:"email"`
		Reason string `json:"reason"`
		user.SignIn
	}
	return handler.Task(func(ctx context.Context, p payload) error {
		if text.Check("email", p.Email, 1, user.MaxEmail) != nil {
			p.Email = "" // nobody's
		}
		if err := db.Unbound(ctx, func(tx pgx.Tx) error { return ownerOf(ctx, tx, p.Email, &p.SignIn) }); err != nil {
			return err
		}
		if p.TenantID == "" {
			_, domain, _ := strings.Cut(p.Email, "@")
			slog.InfoContext(ctx, "sign-in failed", "domain", domain, "reason", p.Reason, "ip", p.IP)
			return nil
		}
		return o.InTenant(ctx, db, p.TenantID, func(tx pgx.Tx) error { return o.Record(ctx, tx, p.Failed(p.Email, p.Reason)) })
	})
}

// ownerOf finds whose address it is, if it is somebody's.
func ownerOf(ctx context.Context, tx pgx.Tx, email string, s *user.SignIn) error {
	err := tx.QueryRow(ctx, `select tenant_id, user_id from lookup_address($1)`, email).Scan(&s.TenantID, &s.UserID)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	return err
}
