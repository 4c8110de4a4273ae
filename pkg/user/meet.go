package user

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// people are the users that an operation is about. They stay as they are until its transaction ends.
type people struct {
	caller, target User // a target that is not there is the zero value
	owners         int  // active ones
}

// meet is the caller, who must manage users, and the user with this id or address. Of the caller's role, the token's word and the table's
// the lesser counts.
func meet(ctx context.Context, tx pgx.Tx, c tenant.Caller, id, email string) (p people, err error) {
	// One after the other: all wait for the owners' rows, in one order, and only then look.
	if _, err := tx.Exec(ctx, `select from users where role = 'owner' order by id for no key update`); err != nil {
		return people{}, err
	}
	found, err := postgres.All(ctx, tx, scan, `select `+columns+` from users
		where role = 'owner' or id::text = any($1) or email = $2 order by id for no key update`, []string{c.UserID, id}, email)
	if err != nil {
		return people{}, err
	}
	for _, u := range found {
		if u.ID == c.UserID {
			p.caller = u
		}
		if u.ID == id || u.Email == email {
			p.target = u
		}
		if u.Role == tenant.Owner && u.Status == Active {
			p.owners++
		}
	}
	if ranks[c.Role] < ranks[p.caller.Role] {
		p.caller.Role = c.Role
	}
	if p.caller.Status != Active || ranks[p.caller.Role] < ranks[tenant.Admin] {
		return people{}, fault.New(fault.Forbidden, "this needs the role admin or owner")
	}
	return p, nil
}

// mayManageOwners refuses what only an owner may do to an owner.
func (p people) mayManageOwners() error {
	if p.caller.Role != tenant.Owner {
		return fault.New(fault.Forbidden, "this needs the role owner")
	}
	return nil
}
