package user

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

const columns = `id, email, role, status, created_at, updated_at`

func scan(row pgx.CollectableRow) (User, error) {
	var u User
	err := row.Scan(&u.ID, &u.Email, &u.Role, &u.Status, &u.CreatedAt, &u.UpdatedAt)
	return u, err
}

// Cursor is the sort key of the user list.
type Cursor struct{ Email, ID string }

// Cursor is u's place in the list.
func (u User) Cursor() Cursor { return Cursor{u.Email, u.ID} }

// List is up to limit users by address, after the cursor.
func List(ctx context.Context, q postgres.Querier, after *Cursor, limit int) ([]User, error) {
	var email, id *string
	if after != nil {
		email, id = &after.Email, &after.ID
	}
	return postgres.All(ctx, q, scan, `select `+columns+` from users
		where $1::text is null or (email collate "C", id) > ($1, $2::uuid) order by email collate "C", id limit $3`, email, id, limit)
}

// ErrTaken is an address that is no tenant's to invite, without saying why.
var ErrTaken = fault.Invalid("the e-mail address cannot be invited: it belongs to a user already")

// New is a user to be.
type New struct {
	ID    string      // empty: a new one
	Email string      // as CheckEmail gives it
	Role  tenant.Role // one of the three
}

// Add gives the tenant of tx a user, invited by that actor. An address that is taken, in whatever tenant, is refused without saying where.
func Add(ctx context.Context, tx pgx.Tx, tenantID, by string, n New) (User, []audit.Event, error) {
	u := User{ID: n.ID, Email: n.Email, Role: n.Role, Status: Active, CreatedAt: ident.Now()}
	u.UpdatedAt = u.CreatedAt
	if u.ID == "" {
		u.ID = ident.New()
	}
	_, err := tx.Exec(ctx, `insert into users (tenant_id, id, email, role, created_at, updated_at) values ($1, $2, $3, $4, $5, $5)`,
		tenantID, u.ID, u.Email, u.Role, u.CreatedAt)
	if postgres.IsUnique(err, "users_email") {
		return User{}, nil, ErrTaken
	}
	return u, []audit.Event{u.invitation(by), u.creation()}, err
}
