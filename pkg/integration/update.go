package integration

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
)

// errChanged: somebody else changed the integration meanwhile.
var errChanged = errors.New("integration: it was changed meanwhile")

// Update changes what is given. What providers are asked is asked before the row is locked.
func (s *Integrations) Update(ctx context.Context, tenantID, id string, n Settings) (Integration, error) {
	for range 3 {
		before, err := Get(ctx, s.db.In(tenantID), id)
		if err != nil {
			return Integration{}, err
		}
		after, known, err := s.changed(ctx, tenantID, before, n)
		if err != nil {
			return Integration{}, err
		}
		if err = s.write(ctx, tenantID, before, after, known); !errors.Is(err, errChanged) {
			return after, err
		}
	}
	return Integration{}, fault.Invalid("the integration is being changed by somebody else: try again")
}

// changed is the integration as it will be, and its secret if that changes.
func (s *Integrations) changed(ctx context.Context, tenantID string, before Integration, n Settings) (after Integration, known *value, err error) {
	after = before
	if err := n.apply(&after); err != nil {
		return after, nil, err
	}
	switch {
	case n.Secret.Set && n.Secret.Value == nil:
		return after, nil, fault.Invalid("secret must not be null: it goes with the integration")
	case moved(before, after) && n.given().Token == nil:
		return after, nil, errMoved
	case n.Secret.Set || n.Config.Set && after.Provider.asks():
		if known, err = s.relearn(ctx, tenantID, before, &after, n); err != nil {
			return after, nil, err
		}
	}
	if n.Secret.Set || n.Config.Set {
		after.Error = nil // of what was
	}
	after.UpdatedAt = ident.Now()
	after.show()
	return after, known, nil
}

// relearn asks the provider who the token is that there will be. What it returns is to be kept, if anything is.
func (s *Integrations) relearn(ctx context.Context, tenantID string, before Integration, after *Integration, n Settings) (*value, error) {
	old, err := s.current(ctx, tenantID, before)
	if err != nil {
		return nil, err
	}
	next, err := after.Provider.with(old.Secret, n.given())
	if err != nil {
		return nil, err
	}
	if err := s.learn(ctx, after, next); err != nil || !n.Secret.Set || next == (Secret{}) {
		return nil, err
	}
	after.Version = max(before.Version, old.Version) + 1
	return &value{after.Version, next}, nil
}

var errMoved = fault.Invalid("secret.token must be given again with an address of another origin: what was given for the one is not sent to the other")

// current is the secret as it is; one that is gone is given anew, whole.
func (s *Integrations) current(ctx context.Context, tenantID string, i Integration) (value, error) {
	if i.Version == 0 {
		return value{}, nil
	}
	v, err := read(ctx, s.secrets, tenantID, i.ID, i.Version)
	if errors.Is(err, ErrGone) {
		return value{}, nil
	}
	return v, err
}

// write is the change, unless there was another one.
func (s *Integrations) write(ctx context.Context, tenantID string, before, after Integration, known *value) error {
	return s.db.InTenant(ctx, tenantID, func(tx pgx.Tx) error {
		now, err := one(ctx, tx, before.ID, ` for no key update`)
		switch {
		case err != nil:
			return err
		case !now.UpdatedAt.Equal(before.UpdatedAt.Time) || now.Version != before.Version:
			return errChanged
		}
		if after.AgentID != nil && *after.AgentID != *before.AgentID { // one whose agent was archived since can still be disabled
			if err := agentThere(ctx, tx, after.AgentID); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, `update integrations set name = $2, agent_id = $3, config = $4, address = $5, enabled = $6, rate_limit = $7, secret_version = $8, error = $9, updated_at = $10
			where id = $1`, after.ID, after.Name, after.AgentID, after.Config, after.Address, after.Enabled, after.RateLimit, after.Version, after.Error, after.UpdatedAt)
		if err != nil || known == nil {
			return taken(err, after)
		}
		return keep(ctx, s.secrets, tenantID, after.ID, *known)
	})
}
