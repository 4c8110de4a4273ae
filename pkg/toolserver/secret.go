package toolserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/jackc/pgx/v5"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/oauth"
	"github.com/agentplatform/agentplatform/pkg/secret"
	"github.com/agentplatform/agentplatform/pkg/secret/kept"
)

var place = kept.Place{Table: "tool_servers", Word: "servers", Noun: "tool server"}

func (c Credential) keep(version int) kept.Secret {
	return kept.Secret{Version: version, Value: cmp.Or(c.Token, c.Key), ClientSecret: c.ClientSecret, RefreshToken: c.RefreshToken}
}

// header is what requests to the server carry. refused is an access token that the server did not take; empty: none.
func (s *Servers) header(ctx context.Context, tenantID string, server Server, refused string) (h http.Header, access string, err error) {
	var k kept.Secret
	switch server.Auth.Type {
	case NoAuth:
		return nil, "", nil
	case OAuth:
		k, err = s.secrets.Fresh(ctx, tenantID, server.ID, server.version, refused, func(ctx context.Context, k kept.Secret) (oauth.Token, error) {
			return s.ask(ctx, tenantID, server, k)
		})
		k.Value = k.Access
	default:
		k, err = s.secrets.Get(ctx, tenantID, server.ID, server.version)
	}
	switch {
	case errors.Is(err, secret.ErrMissing):
		return nil, "", fault.Invalid("the credential of the tool server %s is gone: give it again", server.Name)
	case errors.Is(err, kept.ErrStale):
		return nil, "", fmt.Errorf("toolserver: %w", err)
	case err != nil:
		return nil, "", err
	case server.Auth.Type == APIKey:
		return http.Header{http.CanonicalHeaderKey(*server.Auth.Header): {k.Value}}, "", nil
	}
	return http.Header{"Authorization": {"Bearer " + k.Value}}, k.Access, nil
}

// ask asks the server's authorization server for a token.
func (s *Servers) ask(ctx context.Context, tenantID string, server Server, k kept.Secret) (oauth.Token, error) {
	if server.Auth.TokenURL == nil {
		found, err := oauth.Discover(ctx, s.over, server.URL)
		if err != nil {
			return oauth.Token{}, err
		}
		server.Auth.TokenURL = &found
		if err := s.found(ctx, tenantID, server.ID, found); err != nil {
			return oauth.Token{}, err
		}
	}
	return oauth.Grant{TokenURL: *server.Auth.TokenURL, ClientID: *server.Auth.ClientID, ClientSecret: k.ClientSecret, RefreshToken: k.RefreshToken, Scopes: server.Scopes,
		Resource: server.URL}.Token(ctx, s.over)
}

// found keeps where the token endpoint is: from then on credentials go there, whatever the server says later.
func (s *Servers) found(ctx context.Context, tenantID, serverID, tokenURL string) error {
	var b pgx.Batch
	b.Queue(`update tool_servers set token_url = $2 where id = $1 and token_url is null`, serverID, tokenURL)
	return s.db.Once(ctx, tenantID, &b)
}
