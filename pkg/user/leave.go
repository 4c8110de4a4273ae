package user

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// Disable lets a user of the tenant sign in no more. One that is disabled already stays as it is.
func Disable(ctx context.Context, tx pgx.Tx, c tenant.Caller, id string, reason *string) (User, []audit.Event, error) {
	u, err := leaving(ctx, tx, c, id, reason)
	if err != nil || u.Status == Disabled {
		return u, nil, err
	}
	u.Status, u.UpdatedAt = Disabled, ident.Now()
	_, err = tx.Exec(ctx, `update users set status = $2, updated_at = $3 where id = $1`, u.ID, u.Status, u.UpdatedAt)
	return u, []audit.Event{u.end(audit.UserDisabled, reason)}, err
}

// Delete removes a user from the tenant; what it wrote stays, with its id. The user is answered as it was.
func Delete(ctx context.Context, tx pgx.Tx, c tenant.Caller, id string, reason *string) (User, []audit.Event, error) {
	u, err := leaving(ctx, tx, c, id, reason)
	if err != nil {
		return User{}, nil, err
	}
	// The strongest lock waits for calls of the user that write its client tokens just now, and lets no other begin.
	for _, sql := range []string{
		`select from users where id = $1 for update`, `delete from client_tokens where user_id = $1`, `delete from users where id = $1`,
	} {
		if _, err := tx.Exec(ctx, sql, u.ID); err != nil {
			return User{}, nil, err
		}
	}
	return u, []audit.Event{u.end(audit.UserDeleted, reason)}, nil
}

// leaving is the user with this id, if the caller may make it leave.
func leaving(ctx context.Context, tx pgx.Tx, c tenant.Caller, id string, reason *string) (User, error) {
	if err := checkReason(reason); err != nil {
		return User{}, err
	}
	p, err := meet(ctx, tx, c, strings.ToLower(id), "")
	if err != nil {
		return User{}, err
	}
	u := p.target
	switch {
	case u.ID == "":
		return User{}, fault.Missing("user")
	case u.Role == tenant.Owner && p.mayManageOwners() != nil:
		return User{}, p.mayManageOwners()
	case u.Role == tenant.Owner && u.Status == Active && p.owners == 1:
		return User{}, fault.Invalid("the tenant's last active owner stays")
	case u.ID == p.caller.ID:
		return User{}, fault.Invalid("nobody disables or deletes themselves; another admin or owner can")
	}
	return u, nil
}
