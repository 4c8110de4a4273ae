package connection

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/oauth"
	"github.com/agentplatform/agentplatform/pkg/provider"
	"github.com/agentplatform/agentplatform/pkg/secret"
	"github.com/agentplatform/agentplatform/pkg/secret/kept"
	"github.com/agentplatform/agentplatform/pkg/tracker"
)

// Why the access is over, besides what a provider says.
var (
	errEnded = errors.New("the access has ended, and the provider gave nothing to renew it with")
	errMoved = errors.New("the integration is with another place now")
)

// refusedAgain is why a connection is over whose new token a provider does not take.
const refusedAgain = "the provider does not take the token that it has just given"

// Call asks a provider with an access token. Errors of the provider are *provider.Error.
type Call func(ctx context.Context, over *http.Client, config tracker.Config, access string) error

// Use makes a call as the user. A token that the provider does not take is renewed, and the call made once more; a connection whose new token is not taken
// either is over. A fault.ValidationError says why a connection cannot be used.
func (c *Connections) Use(ctx context.Context, tenantID, id string, call Call) error {
	with, v, err := c.fresh(ctx, tenantID, id, "")
	if err != nil {
		return err
	}
	if err = call(ctx, c.over, with.api(), v.Access); !refused(err) {
		return err
	}
	if with, v, err = c.fresh(ctx, tenantID, id, v.Access); err != nil {
		return err
	}
	if err = call(ctx, c.over, with.api(), v.Access); refused(err) {
		return c.ended(ctx, tenantID, id, v.Version, refusedAgain)
	}
	return err
}

// refused reports whether a provider does not take the token. What it does not let this user do (403) is another thing.
func refused(err error) bool {
	var e *provider.Error
	return errors.As(err, &e) && e.Kind == provider.Denied && e.Status != http.StatusForbidden
}

// fresh is the connection's tokens, renewed if they must be, and the client that they are for. not is an access token that was refused; empty: none.
func (c *Connections) fresh(ctx context.Context, tenantID, id, not string) (client, kept.Secret, error) {
	connection, err := c.usable(ctx, tenantID, id)
	if err != nil {
		return client{}, kept.Secret{}, err
	}
	with, err := c.clients.find(ctx, tenantID, connection.IntegrationID)
	if err != nil {
		return client{}, kept.Secret{}, err
	}
	v, err := c.secrets.Fresh(ctx, tenantID, connection.ID, connection.version, not, func(ctx context.Context, v kept.Secret) (oauth.Token, error) {
		return c.renew(ctx, tenantID, with, v)
	})
	if err == nil && !with.own(v) {
		err = errMoved
	}
	var o *oauth.Error
	switch {
	case err == nil:
		return with, v, nil
	case errors.Is(err, secret.ErrMissing):
		err = c.ended(ctx, tenantID, id, connection.version, "its tokens are gone")
	case errors.Is(err, errEnded), errors.Is(err, errMoved):
		err = c.ended(ctx, tenantID, id, v.Version, err.Error())
	case oauth.Over(err) && errors.As(err, &o):
		err = c.ended(ctx, tenantID, id, v.Version, o.Reason)
	case errors.As(err, &o):
		err = fault.Invalid("the connection cannot be used now: %s", o.Reason)
	case errors.Is(err, kept.ErrStale):
		err = fmt.Errorf("connection: %w", err)
	}
	return client{}, kept.Secret{}, err
}

// usable is the connection, if it and its user are active.
func (c *Connections) usable(ctx context.Context, tenantID, id string) (Connection, error) {
	connection, err := get(ctx, c.db.In(tenantID), id, ` and exists (select from users u where u.id = c.user_id and u.status = 'active')`)
	if err == nil && connection.Status != Active {
		err = over(*connection.Reason)
	}
	return connection, err
}

func over(reason string) error {
	return fault.Invalid("the user has to connect again: %s", reason)
}

// renew asks for a token with what is kept.
func (c *Connections) renew(ctx context.Context, tenantID string, with client, v kept.Secret) (oauth.Token, error) {
	switch {
	case !with.own(v):
		return oauth.Token{}, errMoved
	case v.RefreshToken == "":
		return oauth.Token{}, errEnded
	}
	grant, err := c.clients.grant(ctx, tenantID, with)
	if err != nil {
		return oauth.Token{}, err
	}
	grant.RefreshToken = v.RefreshToken
	return grant.Token(ctx, c.over)
}

// ended writes that the user has to connect again, unless that was done since the tokens of this version.
func (c *Connections) ended(ctx context.Context, tenantID, id string, version int, reason string) error {
	var b pgx.Batch
	b.Queue(`update connections set status = 'reconnect', reason = $3, updated_at = $4 where id = $1 and secret_version <= $2 and status = 'active'`, id, version, reason, ident.Now())
	if err := c.db.Once(context.WithoutCancel(ctx), tenantID, &b); err != nil {
		return err
	}
	return over(reason)
}
