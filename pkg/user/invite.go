package user

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// Invitation is what a caller says of whom it invites.
type Invitation struct {
	Email string       `json:"email"`
	Role  *tenant.Role `json:"role"` // nil: member
}

// Invite adds a user, or makes a disabled one of the tenant active again with that role. An active user with the same role stays as it is.
func Invite(ctx context.Context, tx pgx.Tx, c tenant.Caller, i Invitation) (User, []audit.Event, error) {
	email, err := CheckEmail("email", i.Email)
	if err != nil {
		return User{}, nil, err
	}
	role := tenant.Member
	if i.Role != nil {
		role = *i.Role
	}
	if ranks[role] == 0 {
		return User{}, nil, fault.Invalid("role must be owner, admin or member")
	}
	p, err := meet(ctx, tx, c, "", email)
	if err != nil {
		return User{}, nil, err
	}
	u := p.target
	if role == tenant.Owner || u.Role == tenant.Owner {
		if err := p.mayManageOwners(); err != nil {
			return User{}, nil, err
		}
	}
	switch {
	case u.ID == "":
		return Add(ctx, tx, c.TenantID, c.UserID, New{Email: email, Role: role})
	case u.Status == Active && u.Role != role:
		return User{}, nil, fault.Invalid("the user is active already, with the role %s", u.Role)
	case u.Status == Active:
		return u, nil, nil
	}
	u.Role, u.Status, u.UpdatedAt = role, Active, ident.Now()
	_, err = tx.Exec(ctx, `update users set role = $2, status = $3, updated_at = $4 where id = $1`, u.ID, u.Role, u.Status, u.UpdatedAt)
	return u, []audit.Event{u.invitation(c.UserID)}, err
}
