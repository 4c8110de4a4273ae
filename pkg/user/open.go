package user

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/audit/outbox"
	"github.com/agentplatform/agentplatform/pkg/identity"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// Opening is a tenant's founding with its first owner.
type Opening struct {
	Founding
	Owner     string             // the owner's address, as CheckEmail gives it. Required
	By        string             // who invites the owner, as the audit log names it. Required
	Platform  bool               // By is the platform itself, and not the context's caller
	Outbox    *outbox.Outbox     // whose InTenant runs the transaction. Required
	Directory identity.Directory // Required
}

// Open founds a tenant with its owner, records that in the tenant's log and, last, invites the owner. After an error, or a crash before the commit,
// the same again makes all of it: an invitation that went out is none of a tenant.
func Open(ctx context.Context, tx pgx.Tx, o Opening) (Tenant, error) {
	opened, founded, err := Found(ctx, tx, o.Founding)
	if err != nil {
		return Tenant{}, err
	}
	_, invited, err := Add(ctx, tx, opened.ID, o.By, New{Email: o.Owner, Role: tenant.Owner})
	if err != nil {
		return Tenant{}, err
	}
	events := slices.Concat(founded, invited)
	for i := range events {
		if o.Platform {
			events[i].Actor, events[i].ActorType, events[i].Source = o.By, audit.ActorSystem, audit.SourceSystem
		}
	}
	if err := o.Outbox.Record(ctx, tx, events...); err != nil {
		return Tenant{}, err
	}
	return opened, o.Directory.Invite(ctx, o.Owner)
}
