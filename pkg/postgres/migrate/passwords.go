package migrate

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// SetPassword lets a role that the migrations made log in with this password. superURL connects as a superuser.
func SetPassword(ctx context.Context, superURL, role, password string) error {
	return SetPasswords(ctx, superURL, map[string]string{role: password})
}

// SetPasswords is SetPassword for several roles, over one connection.
func SetPasswords(ctx context.Context, superURL string, passwords map[string]string) error {
	conn, err := pgx.Connect(ctx, superURL)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for role, password := range passwords {
		if password == "" {
			return fmt.Errorf("migrate: role %s needs a password", role)
		}
		var statement string // alter role takes no arguments, so the server quotes them
		if err := conn.QueryRow(ctx, `select format('alter role %I login password %L', $1::text, $2::text)`, role, password).Scan(&statement); err != nil {
			return fmt.Errorf("migrate: role %s: %w", role, err)
		}
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("migrate: role %s: %w", role, err)
		}
	}
	return nil
}
