package pool_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/identity"
	"github.com/agentplatform/agentplatform/pkg/local/pool"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

const password = "correct horse battery"

// local is a pool that is served on a free loopback port, with a clock that tests can move.
type local struct {
	*pool.Pool
	url      string
	began    time.Time
	shift    atomic.Int64 // added to began, nanoseconds
	config   pool.Config
	server   *httptest.Server
	verifier *identity.Verifier
	alice    pool.User
}

// now stands still between two calls of advance, so that no test depends on when a second begins.
func (l *local) now() time.Time          { return l.began.Add(time.Duration(l.shift.Load())) }
func (l *local) advance(d time.Duration) { l.shift.Add(int64(d)) }

func start(t testing.TB, change func(*pool.Config)) *local {
	server := httptest.NewUnstartedServer(nil)
	l := &local{began: time.Now(), url: "http://" + server.Listener.Addr().String(), server: server}
	l.config = pool.Config{Dir: t.TempDir(), BaseURL: l.url, Password: password, PreToken: tenantClaims, Clock: l.now,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	if change != nil {
		change(&l.config)
	}
	l.open(t)
	server.Start()
	t.Cleanup(server.Close)
	t.Cleanup(func() { l.Close() })
	return l
}

// open opens the pool in its directory: also again, as a restart does.
func (l *local) open(t testing.TB) {
	p, err := pool.New(l.config)
	require.NoError(t, err)
	l.Pool = p
	l.server.Config.Handler = p.Handler()
	l.alice, err = p.AddUser("alice@acme.test", "", true)
	require.NoError(t, err)
	_, err = p.AddUser("stray@nowhere.test", "", false)
	require.NoError(t, err)
	l.verifier, err = identity.New(identity.Config{Issuer: p.Issuer(), ClientID: p.ClientID(), JWKSURL: p.JWKSURL(), Clock: l.now})
	require.NoError(t, err)
}

// claims verifies a token as the gateway does.
func (l *local) claims(t testing.TB, token string) tenant.Claims {
	c, err := l.verifier.Verify(t.Context(), "Bearer "+token)
	require.NoError(t, err)
	return c
}

// tenantClaims stands for the platform's own trigger.
func tenantClaims(_ context.Context, e events.CognitoEventUserPoolsPreTokenGenV2_0) (events.CognitoEventUserPoolsPreTokenGenV2_0, error) {
	if e.Request.UserAttributes["email"] != "alice@acme.test" {
		return e, nil
	}
	add := map[string]any{"custom:tenant_id": "0199-tenant", "custom:tenant_slug": "acme", "custom:role": "owner",
		"email": "alice@acme.test", "email_verified": true}
	d := &e.Response.ClaimsAndScopeOverrideDetails
	d.IDTokenGeneration.ClaimsToAddOrOverride, d.AccessTokenGeneration.ClaimsToAddOrOverride = add, add
	return e, nil
}

func TestNewRefusesABadConfig(t *testing.T) {
	good := pool.Config{Dir: t.TempDir(), BaseURL: "http://127.0.0.1:8787", Password: password}
	for name, change := range map[string]func(*pool.Config){
		"no directory":        func(c *pool.Config) { c.Dir = "" },
		"no password":         func(c *pool.Config) { c.Password = "" },
		"no base URL":         func(c *pool.Config) { c.BaseURL = "" },
		"base URL with slash": func(c *pool.Config) { c.BaseURL += "/" },
		"no such region":      func(c *pool.Config) { c.Region = "here" },
	} {
		t.Run(name, func(t *testing.T) {
			c := good
			change(&c)
			_, err := pool.New(c)
			require.ErrorContains(t, err, "identity pool: ")
		})
	}
}

func TestAddUser(t *testing.T) {
	l := start(t, nil)
	again, err := l.AddUser(" Alice@ACME.test ", "", true)
	require.NoError(t, err)
	require.Equal(t, l.alice, again)
	again, err = l.AddUser("alice@acme.test", l.alice.Sub, false)
	require.NoError(t, err)
	require.False(t, again.Verified)

	chosen, err := l.AddUser("bob@globex.test", "0199-bob", true)
	require.NoError(t, err)
	require.Equal(t, "0199-bob", chosen.Sub)
	_, err = l.AddUser("bob@globex.test", "0199-other", true)
	require.ErrorContains(t, err, "0199-bob")
	_, err = l.AddUser("eve@globex.test", "0199-bob", true)
	require.ErrorContains(t, err, "another user's")
	for _, bad := range []string{"", "alice", "@acme.test", "a b@acme.test", "alice@"} {
		_, err = l.AddUser(bad, "", true)
		require.ErrorContains(t, err, "not an e-mail address")
	}
}

var errTrigger = errors.New("dial tcp: connection refused")
