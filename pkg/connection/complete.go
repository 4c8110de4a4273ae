package connection

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/oauth"
	"github.com/agentplatform/agentplatform/pkg/postgres"
	"github.com/agentplatform/agentplatform/pkg/provider"
	"github.com/agentplatform/agentplatform/pkg/secret/kept"
	"github.com/agentplatform/agentplatform/pkg/tenant"
	"github.com/agentplatform/agentplatform/pkg/text"
	"github.com/agentplatform/agentplatform/pkg/tracker"
)

// Return is what a user comes back from a provider with.
type Return struct {
	State string `json:"state"`
	Code  string `json:"code"`
}

// errState is the one answer to a state that is not good: nobody learns whether it was ever somebody's.
var errState = fault.Invalid("the state is not one that you have begun a connection with in the last ten minutes, or it was used: connect again")

// codes is what a code may be: 1 to 2048 visible characters (RFC 6749, appendix A.11).
var codes = regexp.MustCompile(`^[\x21-\x7e]{1,1000}[\x21-\x7e]{0,1000}$`)

// askTime is how long a provider has to give the tokens and to say whose they are, while the user waits; revokeTime, to take them back; rowTime, the database to
// take the connection.
const (
	askTime    = 20 * time.Second
	revokeTime = 5 * time.Second
	rowTime    = 10 * time.Second
)

// Complete makes the connection that the caller has begun. A person who is connected already is connected anew, and by this integration, if it was by another.
func (c *Connections) Complete(ctx context.Context, caller tenant.Caller, r Return) (Connection, error) {
	if !codes.MatchString(r.Code) {
		return Connection{}, fault.Invalid("code must be the code that the provider has sent back")
	}
	begun, err := c.use(ctx, caller, r.State)
	if err != nil {
		return Connection{}, err
	}
	with, err := c.clients.find(ctx, caller.TenantID, begun.integrationID)
	if err != nil {
		return Connection{}, err
	}
	grant, err := c.clients.grant(ctx, caller.TenantID, with)
	if err != nil {
		return Connection{}, err
	}
	grant.Code, grant.RedirectURI, grant.Verifier = r.Code, begun.redirectURI, verifier(grant.ClientSecret, r.State)
	asking, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	token, err := grant.Token(asking, c.over)
	if err != nil {
		return Connection{}, told(err)
	}
	who, err := c.who(asking, with, token)
	var made Connection
	if err == nil {
		made, err = c.row(ctx, caller, with, who)
	}
	if err != nil {
		c.giveBack(ctx, caller.TenantID, with, grant, token)
		return Connection{}, err
	}
	if token.Scopes == nil { // as they were asked for (RFC 6749 §5.1)
		if token.Scopes = with.Scopes; len(token.Scopes) == 0 {
			token.Scopes = append([]string{}, with.server.Scopes...)
		}
	}
	return c.save(ctx, caller, with, made, who, token)
}

// who is whose the token is.
func (c *Connections) who(ctx context.Context, with client, token oauth.Token) (tracker.Identity, error) {
	who, err := with.tracker.Whoami(ctx, c.over, with.api(), token.Access)
	if err == nil && text.Check("id", who.UserID, 1, 200) != nil {
		err = fault.Invalid("the connection cannot be made: the provider does not say who you are")
	}
	return who, told(err)
}

// giveBack revokes tokens of which no connection comes, where the provider can.
func (c *Connections) giveBack(ctx context.Context, tenantID string, with client, grant oauth.Grant, token oauth.Token) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), revokeTime)
	defer cancel()
	if with.server.RevokeURL == "" {
		return
	}
	if err := grant.Revoke(ctx, c.over, with.server.RevokeURL, cmp.Or(token.Refresh, token.Access)); err != nil {
		slog.Warn("tokens that nobody keeps could not be revoked", "tenant_id", tenantID, "integration_id", with.ID, "provider", with.Provider, "error", err)
	}
}

type begun struct{ integrationID, redirectURI string }

// use takes the state: of many at once, one has it.
func (c *Connections) use(ctx context.Context, caller tenant.Caller, state string) (b begun, err error) {
	err = c.db.InTenant(ctx, caller.TenantID, func(tx pgx.Tx) error {
		b, err = postgres.One(ctx, tx, "state", func(row pgx.CollectableRow) (b begun, err error) {
			err = row.Scan(&b.integrationID, &b.redirectURI)
			return b, err
		}, `delete from connection_states where state_hash = $1 and user_id = $2 and expires_at > clock_timestamp() returning integration_id, redirect_uri`, hash(state), caller.UserID)
		if fault.IsMissing(err) {
			err = errState
		}
		return err
	})
	return b, err
}

// told is an error of a provider as the user may read it.
func told(err error) error {
	var o *oauth.Error
	var p *provider.Error
	switch {
	case errors.As(err, &o):
		return fault.Invalid("the connection cannot be made: %s", o.Reason)
	case errors.As(err, &p):
		return fault.Invalid("the connection cannot be made: %s", p.Reason)
	}
	return err
}

// incomplete is why a connection cannot be used whose tokens were not kept yet.
const incomplete = "it was not completed"

// save keeps the tokens of a connection whose row is there, so that no token is kept that nobody could find.
func (c *Connections) save(ctx context.Context, caller tenant.Caller, with client, connection Connection, who tracker.Identity, token oauth.Token) (Connection, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute) // the code was used: it cannot be done again
	defer cancel()
	lease, err := c.secrets.Hold(ctx, caller.TenantID, connection.ID)
	if err != nil {
		return Connection{}, err
	}
	version := lease.Version
	if before, err := c.secrets.Get(ctx, caller.TenantID, connection.ID, version); err == nil {
		version = before.Version // of tokens whose renewal was cut off
	}
	version++
	err = lease.Put(ctx, kept.Secret{Version: version, Value: with.place(), RefreshToken: token.Refresh, Access: token.Access,
		Obtained: time.Now(), Expires: token.Expires})
	if err != nil {
		return Connection{}, errors.Join(err, lease.Release(ctx, 0))
	}
	err = c.db.InTenant(ctx, caller.TenantID, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `update connections set status = 'active', reason = null, scopes = $2, account = $3, account_name = $4, secret_version = $5,
			secret_lease = nullif(secret_lease, $6), updated_at = $7, integration_id = $8 where id = $1`, connection.ID, token.Scopes, optional(who.Account), optional(who.AccountName),
			version, lease.Until(), ident.Now(), with.ID)
		if postgres.IsForeignKey(err, "connections_tenant_id_integration_id_fkey") {
			err = fault.Missing("integration") // it was deleted meanwhile
		}
		if err == nil {
			connection, err = get(ctx, tx, connection.ID, ``)
		}
		return err
	})
	return connection, err
}

// row is the person's connection, made if there is none.
func (c *Connections) row(ctx context.Context, caller tenant.Caller, with client, who tracker.Identity) (connection Connection, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rowTime)
	defer cancel()
	err = c.db.InTenant(ctx, caller.TenantID, func(tx pgx.Tx) error {
		if err := present(ctx, tx, caller.UserID, "key share"); err != nil {
			return err
		}
		id, now := ident.New(), ident.Now()
		_, err := tx.Exec(ctx, `insert into connections (tenant_id, id, user_id, integration_id, provider, provider_user_id, status, reason, created_at, updated_at)
			values ($1, $2, $3, $4, $5, $6, 'reconnect', $7, $8, $8) on conflict (tenant_id, provider, provider_user_id) do nothing`,
			caller.TenantID, id, caller.UserID, with.ID, with.Provider, who.UserID, incomplete, now)
		if postgres.IsForeignKey(err, "connections_tenant_id_integration_id_fkey") {
			err = fault.Missing("integration") // it was deleted meanwhile
		}
		if err != nil {
			return err
		}
		connection, err = postgres.One(ctx, tx, "connection", scan, `select `+columns+` from connections c where c.provider = $1 and c.provider_user_id = $2`, with.Provider, who.UserID)
		if err == nil && connection.UserID != caller.UserID {
			err = fault.Invalid("another user of the tenant is connected as this person")
		}
		return err
	})
	return connection, err
}

// optional is a text that may be none; a longer one than anybody would read is cut.
func optional(s string) *string {
	s, _ = text.Cut(s, 200)
	if s == "" {
		return nil
	}
	return &s
}
