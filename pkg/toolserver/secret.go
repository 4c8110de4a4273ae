package toolserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/oauth"
	"github.com/agentplatform/agentplatform/pkg/secret"
)

// kept is what the store of secrets has of a server: all that belongs together, as one JSON text.
type kept struct {
	Version      int       `json:"version"`
	Value        string    `json:"value,omitempty"` // BEARER, API_KEY
	ClientSecret string    `json:"clientSecret,omitempty"`
	RefreshToken string    `json:"refreshToken,omitempty"`
	Access       string    `json:"access,omitempty"`
	Obtained     time.Time `json:"obtained,omitzero"`
	Expires      time.Time `json:"expires,omitzero"` // zero: not said
}

func (c Credential) keep(version int) kept {
	return kept{Version: version, Value: cmp.Or(c.Token, c.Key), ClientSecret: c.ClientSecret, RefreshToken: c.RefreshToken}
}

// early is how long before its end a token is renewed, or an eighth of its life where that is shorter.
const early = 5 * time.Minute

// fresh reports whether the access token is good for now without being renewed; usable, whether it is at all.
func (k kept) fresh(now time.Time) bool {
	return k.Access != "" && (k.Expires.IsZero() || now.Before(k.Expires.Add(-min(early, k.Expires.Sub(k.Obtained)/8))))
}

func (k kept) usable(now time.Time) bool {
	return k.Access != "" && (k.Expires.IsZero() || now.Before(k.Expires))
}

func id(tenantID, serverID string) (secret.ID, error) {
	return secret.Of(tenantID, "servers", serverID)
}

func (s *Servers) put(ctx context.Context, tenantID, serverID string, k kept) error {
	name, err := id(tenantID, serverID)
	if err != nil {
		return err
	}
	b, err := json.Marshal(k)
	if err != nil {
		return err
	}
	err = s.secrets.Put(ctx, name, string(b))
	if errors.Is(err, secret.ErrSize) {
		return fault.Invalid("the tokens of the tool server are too long to be kept")
	}
	return err
}

func (s *Servers) drop(ctx context.Context, tenantID, serverID string) error {
	name, err := id(tenantID, serverID)
	if err != nil {
		return err
	}
	return s.secrets.Delete(ctx, name)
}

// errStale: the store did not give what was put last, although it was asked some times.
var errStale = errors.New("toolserver: the store of secrets gives an older value than the last one")

const (
	readings = 5
	pause    = 200 * time.Millisecond // between two questions
)

// get is the server's secret, of the row's version at least: a read may for a moment give the value before the last.
func (s *Servers) get(ctx context.Context, tenantID string, server Server) (kept, error) {
	name, err := id(tenantID, server.ID)
	if err != nil {
		return kept{}, err
	}
	for range readings {
		var k kept
		value, err := s.secrets.Get(ctx, name)
		switch {
		case errors.Is(err, secret.ErrMissing):
			return k, fault.Invalid("the credential of the tool server %s is gone: give it again", server.Name)
		case err != nil:
			return k, err
		case json.Unmarshal([]byte(value), &k) != nil:
			return k, errors.New("toolserver: the secret is not what was put") // without the error, which quotes it
		case k.Version >= server.version:
			return k, nil
		}
		if err := wait(ctx, pause); err != nil {
			return k, err
		}
	}
	return kept{}, errStale
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// header is what requests to the server carry. refused is an access token that the server did not take; empty: none.
func (s *Servers) header(ctx context.Context, tenantID string, server Server, refused string) (h http.Header, access string, err error) {
	if server.Auth.Type == NoAuth {
		return nil, "", nil
	}
	k, err := s.get(ctx, tenantID, server)
	if err != nil {
		return nil, "", err
	}
	switch server.Auth.Type {
	case APIKey:
		return http.Header{http.CanonicalHeaderKey(*server.Auth.Header): {k.Value}}, "", nil
	case OAuth:
		if !k.fresh(time.Now()) || k.Access == refused {
			if k, err = s.renew(ctx, tenantID, server, k, refused); err != nil {
				return nil, "", err
			}
		}
		k.Value = k.Access
	}
	return http.Header{"Authorization": {"Bearer " + k.Value}}, k.Access, nil
}

// renewTime bounds one renewal; the lease outlives it.
const renewTime = 40 * time.Second

// renew gets another access token. One process at a time asks for it; the others go on with the one there is while that is good, and wait otherwise.
func (s *Servers) renew(ctx context.Context, tenantID string, server Server, k kept, refused string) (kept, error) {
	for {
		mine, version, err := s.lease(ctx, tenantID, server.ID)
		if err != nil {
			return k, err
		}
		server.version = version
		if mine {
			return s.renewed(ctx, tenantID, server, refused)
		}
		if k.usable(time.Now()) && k.Access != refused {
			return k, nil
		}
		if err := wait(ctx, pause); err != nil {
			return k, err
		}
		if k, err = s.get(ctx, tenantID, server); err != nil {
			return k, err
		}
		if k.fresh(time.Now()) && k.Access != refused {
			return k, nil
		}
	}
}

// renewed asks for the token, under the lease.
func (s *Servers) renewed(ctx context.Context, tenantID string, server Server, refused string) (kept, error) {
	within, cancel := context.WithTimeout(ctx, renewTime)
	defer cancel()
	k, err := s.get(within, tenantID, server)
	if err == nil && (!k.fresh(time.Now()) || k.Access == refused) { // it may have been renewed before the lease was had
		k, err = s.ask(within, tenantID, server, k)
	}
	return k, errors.Join(err, s.release(context.WithoutCancel(ctx), tenantID, server.ID, k.Version))
}

// ask gets a token and keeps it. A rotated refresh token that is not kept is lost, so keeping it outlives the request, and is tried again.
func (s *Servers) ask(ctx context.Context, tenantID string, server Server, k kept) (kept, error) {
	if server.Auth.TokenURL == nil {
		found, err := oauth.Discover(ctx, s.over, server.URL)
		if err != nil {
			return k, err
		}
		server.Auth.TokenURL = &found
		if err := s.found(ctx, tenantID, server.ID, found); err != nil {
			return k, err
		}
	}
	grant := oauth.Grant{TokenURL: *server.Auth.TokenURL, ClientID: *server.Auth.ClientID, ClientSecret: k.ClientSecret, RefreshToken: k.RefreshToken, Scopes: server.Scopes,
		Resource: server.URL}
	token, err := grant.Token(ctx, s.over)
	if err != nil {
		return k, err
	}
	next := k
	next.Version, next.Access, next.Obtained, next.Expires = max(k.Version, server.version)+1, token.Access, time.Now(), token.Expires
	if token.Refresh != "" {
		next.RefreshToken = token.Refresh
	}
	keeping, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewTime/2)
	defer cancel()
	for try := 1; ; try++ {
		err := s.put(keeping, tenantID, server.ID, next)
		if err == nil {
			return next, nil
		}
		if try == 3 || wait(keeping, pause) != nil {
			return k, err
		}
	}
}
