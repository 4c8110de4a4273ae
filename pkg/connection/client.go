package connection

import (
	"context"
	"strings"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/integration"
	"github.com/agentplatform/agentplatform/pkg/oauth"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/secret"
	"github.com/agentplatform/agentplatform/pkg/secret/kept"
	"github.com/agentplatform/agentplatform/pkg/tracker"
)

// Clients are the OAuth clients that tenants' integrations have. It is safe for concurrent use.
type Clients struct {
	db      *postgres.DB
	secrets *integration.Secrets
}

// NewClients reads the clients' secrets from a store.
func NewClients(db *postgres.DB, from secret.StoreReader) *Clients {
	return &Clients{db, integration.NewSecrets(from)}
}

// client is the OAuth client of an integration.
type client struct {
	integration.Integration
	integration.Client
	tracker tracker.Provider
	server  tracker.OAuth
}

// find is the client of an integration that is in use.
func (c *Clients) find(ctx context.Context, tenantID, integrationID string) (client, error) {
	i, err := integration.Get(ctx, c.db.In(tenantID), integrationID)
	if err != nil {
		return client{}, err
	}
	provider, ok := tracker.Of(string(i.Provider))
	switch {
	case !ok:
		return client{}, fault.Invalid("users connect to %s only: the integration is one with %s", strings.Join(tracker.Names(), ", "), i.Provider)
	case !i.Enabled:
		return client{}, fault.Invalid("the integration is disabled")
	}
	of, err := i.Client()
	return client{i, of, provider, provider.OAuth().At(of.AuthURL)}, err
}

// grant is what the client asks with.
func (c *Clients) grant(ctx context.Context, tenantID string, of client) (oauth.Grant, error) {
	s, err := c.secrets.Get(ctx, tenantID, of.ID, of.Version)
	if err == nil && s.Token == "" {
		err = fault.Invalid("the integration has no secret of its OAuth client")
	}
	return oauth.Grant{TokenURL: of.server.TokenURL, ClientID: of.ClientID, ClientSecret: s.Token, InBody: true}, err
}

// place is where tokens of the client go. They are of no use elsewhere, and for nobody there to see.
func (c client) place() string {
	return strings.Join([]string{c.ClientID, c.server.TokenURL, c.APIURL}, " ")
}

// api is where the client's tokens are good.
func (c client) api() tracker.Config { return tracker.Config{APIURL: c.APIURL} }

// own reports whether tokens were given for the place where the client is now.
func (c client) own(v kept.Secret) bool { return v.Value == c.place() }
