package user

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/audit/outbox"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/user"
)

// act is what an operation does to a user in the caller's tenant, and what must be recorded of it.
type act[A any] func(ctx context.Context, tx pgx.Tx, caller tenant.Caller, args A) (user.User, []audit.Event, error)

// acting is an operation on a user: in the tenant, in its log, and then in the identity pool, by tell. The pool comes last: what it refuses rolls back.
func acting[A any](db *postgres.DB, o *outbox.Outbox, do act[A], tell tell) func(context.Context, A) (user.User, error) {
	return func(ctx context.Context, args A) (u user.User, err error) {
		caller, err := tenant.OwnerOrAdmin(ctx)
		if err != nil {
			return user.User{}, err
		}
		err = o.InTenant(ctx, db, caller.TenantID, func(tx pgx.Tx) error {
			var events []audit.Event
			if u, events, err = do(ctx, tx, caller, args); err != nil {
				return err
			}
			if err := o.Record(ctx, tx, events...); err != nil {
				return err
			}
			return tell(ctx, u.Email)
		})
		return u, err
	}
}

// tell is an operation of the identity pool.
type tell func(ctx context.Context, email string) error

// unlessOperator is tell for an account that is the tenant's matter. A platform operator's is not: it leaves the tenant, whose claims its sessions carry, and
// so these end; it signs in again as an operator without a tenant.
func unlessOperator(operators tenant.Operators, do, signOut tell) tell {
	return func(ctx context.Context, email string) error {
		if operators.Has(email) {
			return signOut(ctx, email)
		}
		return do(ctx, email)
	}
}

// leaver is who leaves, and why.
type leaver struct {
	ID     string  `json:"id"`
	Reason *string `json:"reason"`
}
