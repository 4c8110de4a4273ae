package integration

import (
	"context"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/clienttoken"
	"github.com/agentplatform/agentplatform/pkg/egress"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/secret"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// Integrations are the integrations of all tenants, to be changed. It is safe for concurrent use.
type Integrations struct {
	db      *postgres.DB
	secrets secret.Store
	over    *http.Client
}

// Open is an Integrations that asks providers as c says.
func Open(db *postgres.DB, secrets secret.Store, c egress.Config) *Integrations {
	return &Integrations{db, secrets, egress.New(c)}
}

// Create makes an integration. A repeat of a clientToken is answered with what the first call made, whatever secret it gives.
func (s *Integrations) Create(ctx context.Context, caller tenant.Caller, n New, clientToken *string) (Integration, error) {
	i := Integration{ID: ident.New(), Provider: n.Provider, Config: "{}", Enabled: true, RateLimit: DefaultRateLimit, CreatedBy: caller.UserID, CreatedAt: ident.Now()}
	i.UpdatedAt = i.CreatedAt
	if err := n.apply(&i); err != nil {
		return Integration{}, err
	}
	known, err := n.Provider.with(Secret{}, n.given())
	if err != nil {
		return Integration{}, err
	}
	if known != (Secret{}) {
		i.Version = 1
	}
	i.show()
	if err := s.learn(ctx, &i, known); err != nil {
		return Integration{}, err
	}
	said := n
	said.Secret.Value = nil // nothing that is made of a secret is stored beside it
	made, put := Integration{}, false
	err = s.db.InTenant(ctx, caller.TenantID, func(tx pgx.Tx) (err error) {
		made, _, err = clienttoken.Once(ctx, tx, caller, "createIntegration", clientToken, said, func() (Integration, error) {
			if err := insert(ctx, tx, caller.TenantID, i); err != nil || i.Version == 0 {
				return i, err
			}
			put = true // before the commit: a row's secret is there
			return i, keep(ctx, s.secrets, caller.TenantID, i.ID, value{i.Version, known})
		})
		return err
	})
	if err != nil && put {
		cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_ = drop(cleanup, s.secrets, caller.TenantID, i.ID) // of an integration that is none: nobody would look for it
	}
	return made, err
}

func (n Settings) given() SecretGiven {
	if n.Secret.Value == nil {
		return SecretGiven{}
	}
	return *n.Secret.Value
}

func insert(ctx context.Context, tx pgx.Tx, tenantID string, i Integration) error {
	if err := agentThere(ctx, tx, i.AgentID); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `insert into integrations (tenant_id, `+columns+`) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`, tenantID, i.ID, i.Name, i.Provider,
		i.AgentID, i.Config, i.Address, i.Enabled, i.RateLimit, i.Version, i.Error, i.CreatedBy, i.CreatedAt, i.UpdatedAt)
	return taken(err, i)
}

// taken tells what another integration has already. Of an address it is not told whose it is, nor whether the tenant could know.
func taken(err error, i Integration) error {
	switch {
	case postgres.IsUnique(err, "integrations_tenant_id_name_key"):
		return fault.Invalid("an integration has the name %s already", i.Name)
	case postgres.IsUnique(err, "integrations_address"):
		return fault.Invalid("config.address %s is taken", *i.Address)
	}
	return err
}

// agentThere refuses an agent that could never answer.
func agentThere(ctx context.Context, tx pgx.Tx, id *string) error {
	if id == nil {
		return nil
	}
	found, err := postgres.All(ctx, tx, pgx.RowTo[bool], `select status = 'archived' from agents where id = $1`, *id)
	switch {
	case err != nil:
		return err
	case len(found) == 0:
		return errNoAgent
	case found[0]:
		return fault.Invalid("the agent is archived")
	}
	return nil
}
