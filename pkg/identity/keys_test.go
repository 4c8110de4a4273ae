package identity_test

import (
	"context"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/identity"
)

const (
	issuer   = "http://pool.test/us-east-1_abcdefghi"
	clientID = "abcdefghijklmnopqrstuvwxyz"
)

// fakePool signs tokens and serves a JWKS over real HTTP; its clock is the verifier's.
type fakePool struct {
	mu      sync.Mutex
	current *rsa.PrivateKey
	serial  int
	now     time.Time
	fetches int
	broken  bool
	url     string
}

func newFakePool(t testing.TB) *fakePool {
	p := &fakePool{current: newKey(t), now: time.Now()}
	s := httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(s.Close)
	p.url = s.URL
	return p
}

func (p *fakePool) serve(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fetches++
	if p.broken {
		http.Error(w, "down", http.StatusBadGateway)
		return
	}
	n := base64.RawURLEncoding.EncodeToString(p.current.N.Bytes())
	e := base64.RawURLEncoding.EncodeToString(big.NewInt(int64(p.current.E)).Bytes())
	_ = json.NewEncoder(w).Encode(map[string]any{"keys": []map[string]any{
		{"kty": "RSA", "alg": "RS256", "use": "sig", "kid": p.kidLocked(), "n": n, "e": e},
		{"kty": "RSA", "alg": "RS512", "use": "sig", "kid": "for-another-algorithm", "n": n, "e": e},
		{"kty": "RSA", "use": "enc", "kid": "for-encryption", "n": n, "e": e},
	}})
}

func (p *fakePool) kidLocked() string { return fmt.Sprintf("key-%d", p.serial) }

func (p *fakePool) kid() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.kidLocked()
}

func (p *fakePool) key() *rsa.PrivateKey {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current
}

func (p *fakePool) rotate(t testing.TB) {
	k := newKey(t)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.current, p.serial = k, p.serial+1
}

func (p *fakePool) setBroken(broken bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = broken
}

func (p *fakePool) fetched() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fetches
}

func (p *fakePool) advance(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = p.now.Add(d)
}

func (p *fakePool) clock() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

func (p *fakePool) verifier(t testing.TB, change func(*identity.Config)) *identity.Verifier {
	c := identity.Config{Issuer: issuer, ClientID: clientID, JWKSURL: p.url, Clock: p.clock}
	if change != nil {
		change(&c)
	}
	v, err := identity.New(c)
	require.NoError(t, err)
	return v
}

func (p *fakePool) idClaims() jwt.MapClaims {
	now := p.clock()
	return jwt.MapClaims{"iss": issuer, "aud": clientID, "token_use": "id", "sub": "0199-sub", "email": "alice@acme.test", "email_verified": true,
		"iat": now.Unix(), "auth_time": now.Unix(), "exp": now.Add(time.Hour).Unix(), "jti": "1", "origin_jti": "2", "event_id": "3",
		"cognito:username": "0199-sub", "custom:tenant_id": "0199-tenant", "custom:tenant_slug": "acme", "custom:role": "owner"}
}

func (p *fakePool) accessClaims() jwt.MapClaims {
	c := with(p.idClaims(), "aud", nil)
	c["token_use"], c["client_id"], c["scope"] = "access", clientID, "aws.cognito.signin.user.admin"
	return c
}

func (p *fakePool) sign(t testing.TB, claims jwt.MapClaims) string {
	return p.signAs(t, jwt.SigningMethodRS256, p.key(), p.kid(), claims)
}

func (p *fakePool) signAs(t testing.TB, method jwt.SigningMethod, key any, kid string, claims jwt.MapClaims) string {
	token := jwt.NewWithClaims(method, claims)
	if kid != "" {
		token.Header["kid"] = kid
	}
	s, err := token.SignedString(key)
	require.NoError(t, err)
	return s
}

func (p *fakePool) signCritical(t testing.TB, claims jwt.MapClaims) string {
	token := jwt.NewWithClaims(jwt.SigningMethodRS256, claims)
	token.Header["kid"], token.Header["crit"], token.Header["b64"] = p.kid(), []string{"b64"}, false
	s, err := token.SignedString(p.key())
	require.NoError(t, err)
	return s
}

func TestRotation(t *testing.T) {
	p := newFakePool(t)
	v := p.verifier(t, nil)
	old := p.sign(t, p.idClaims())
	_, err := v.Verify(t.Context(), old)
	require.NoError(t, err)
	require.Equal(t, 1, p.fetched())

	p.rotate(t)
	token := p.sign(t, p.idClaims())
	for range 50 { // within the gap nobody makes the verifier fetch
		_, err = v.Verify(t.Context(), token)
		require.ErrorContains(t, errors.Unwrap(err), "unknown key id")
	}
	require.Equal(t, 1, p.fetched())
	p.advance(11 * time.Second)
	_, err = v.Verify(t.Context(), token)
	require.NoError(t, err)
	require.Equal(t, 2, p.fetched())
	_, err = v.Verify(t.Context(), old)
	require.ErrorContains(t, errors.Unwrap(err), "unknown key id", "a withdrawn key ends the remembered tokens that it signed")
}

func TestOldKeysAreFetchedAgain(t *testing.T) {
	p := newFakePool(t)
	v := p.verifier(t, func(c *identity.Config) { c.KeysMaxAge = 10 * time.Minute })
	token := p.sign(t, p.idClaims())
	_, err := v.Verify(t.Context(), token)
	require.NoError(t, err)
	p.advance(11 * time.Minute)
	p.setBroken(true)
	for range 20 {
		_, err = v.Verify(t.Context(), token)
		require.NoError(t, err, "an unreachable pool does not sign anybody out")
	}
	require.Equal(t, 2, p.fetched())
	p.setBroken(false)
	p.rotate(t)
	p.advance(11 * time.Second)
	_, err = v.Verify(t.Context(), token)
	require.Equal(t, fault.Unauthorized, fault.From(err).Type, "a withdrawn key is noticed without a new key id")
}

func TestPoolDownAtFirst(t *testing.T) {
	p := newFakePool(t)
	v := p.verifier(t, nil)
	p.setBroken(true)
	token := p.sign(t, p.idClaims())
	_, err := v.Verify(t.Context(), token)
	require.Equal(t, fault.InternalError, fault.From(err).Type, "nothing is known about the token: the client must not drop it")
	p.setBroken(false)
	p.advance(2 * time.Second)
	_, err = v.Verify(t.Context(), token)
	require.NoError(t, err)
}

func TestConcurrentFirstUseFetchesOnce(t *testing.T) {
	p := newFakePool(t)
	v := p.verifier(t, func(c *identity.Config) { c.Remember = 4 })
	var wg sync.WaitGroup
	for i := range 32 {
		claims := p.idClaims()
		claims["jti"] = i
		token := p.sign(t, claims)
		wg.Go(func() {
			_, err := v.Verify(context.Background(), token)
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.Equal(t, 1, p.fetched())
}

func TestKeysForOtherPurposesAreNotUsed(t *testing.T) {
	p := newFakePool(t)
	v := p.verifier(t, nil)
	for _, kid := range []string{"for-encryption", "for-another-algorithm"} {
		_, err := v.Verify(t.Context(), p.signAs(t, jwt.SigningMethodRS256, p.key(), kid, p.idClaims()))
		require.ErrorContains(t, errors.Unwrap(err), "unknown key id")
	}
}
