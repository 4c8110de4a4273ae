package connection

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/oauth"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// Beginning is what a user begins a connection with.
type Beginning struct {
	IntegrationID string `json:"integrationId"`
	RedirectURI   string `json:"redirectUri"` // where the provider sends the user back to: one that the integration names
}

// Begun is a connection that has begun: the user goes to the address, and comes back with a state and a code.
type Begun struct {
	AuthorizationURL string     `json:"authorizationUrl"`
	ExpiresAt        ident.Time `json:"expiresAt"`
}

const stateSize = 32 // bytes

// Start begins a connection. Nothing secret is kept of it: of the state its hash, and the verifier is made of it anew.
func (c *Clients) Start(ctx context.Context, caller tenant.Caller, b Beginning) (Begun, error) {
	with, err := c.find(ctx, caller.TenantID, b.IntegrationID)
	if err != nil {
		return Begun{}, err
	}
	if !slices.Contains(with.RedirectURIs, b.RedirectURI) {
		return Begun{}, fault.Invalid("redirectUri is none of the integration's redirectUris")
	}
	grant, err := c.grant(ctx, caller.TenantID, with)
	if err != nil {
		return Begun{}, err
	}
	random := make([]byte, stateSize)
	_, _ = rand.Read(random) // never fails
	state := base64.RawURLEncoding.EncodeToString(random)
	scopes := with.Scopes
	if len(scopes) == 0 {
		scopes = with.server.Scopes
	}
	to, err := oauth.Authorization{URL: with.server.AuthorizeURL, ClientID: grant.ClientID, RedirectURI: b.RedirectURI, Scopes: scopes, Join: with.server.ScopeJoin,
		State: state, Verifier: verifier(grant.ClientSecret, state), Extra: with.server.Extra}.Address()
	if err != nil {
		return Begun{}, fault.Invalid("%s", err)
	}
	ends, err := c.open(ctx, caller, with.ID, b.RedirectURI, state)
	return Begun{AuthorizationURL: to, ExpiresAt: ends}, err
}

// verifier is the one of RFC 7636 that belongs to a state: nobody makes it who has no client secret.
func verifier(clientSecret, state string) string {
	h := hmac.New(sha256.New, []byte(clientSecret))
	h.Write([]byte("pkce " + state))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

func hash(state string) []byte {
	h := sha256.Sum256([]byte(state))
	return h[:]
}

// mostOpen is how many connections a user may have begun at once: with another one the oldest is given up.
const mostOpen = 20

// open writes a state.
func (c *Clients) open(ctx context.Context, caller tenant.Caller, integrationID, redirectURI, state string) (ends ident.Time, err error) {
	err = c.db.InTenant(ctx, caller.TenantID, func(tx pgx.Tx) error {
		if err := present(ctx, tx, caller.UserID, "no key update"); err != nil { // one at a time begins another, so that they can be counted
			return err
		}
		if _, err := tx.Exec(ctx, `delete from connection_states where user_id = $1 and (expires_at < clock_timestamp() or state_hash not in
			(select state_hash from connection_states where user_id = $1 order by expires_at desc limit $2))`, caller.UserID, mostOpen-1); err != nil {
			return err
		}
		ends, err = postgres.One(ctx, tx, "integration", pgx.RowTo[ident.Time], `insert into connection_states (tenant_id, state_hash, user_id, integration_id, redirect_uri, expires_at)
			values ($1, $2, $3, $4, $5, clock_timestamp() + interval '10 minutes') returning expires_at`, caller.TenantID, hash(state), caller.UserID, integrationID, redirectURI)
		if postgres.IsForeignKey(err, "connection_states_tenant_id_integration_id_fkey") {
			err = fault.Missing("integration") // it was deleted meanwhile
		}
		return err
	})
	return ends, err
}

// present holds that the user is there and active, until tx ends.
func present(ctx context.Context, tx pgx.Tx, userID, lock string) error {
	_, err := postgres.One(ctx, tx, "user", pgx.RowTo[bool], `select true from users where id = $1 and status = 'active' for `+lock, userID)
	if fault.IsMissing(err) {
		err = fault.New(fault.Forbidden, "this user is not active")
	}
	return err
}
