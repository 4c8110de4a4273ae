package identity_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/identity"
)

func TestVerifyAccepts(t *testing.T) {
	p := newFakePool(t)
	v := p.verifier(t, nil)
	id, access := p.sign(t, p.idClaims()), p.sign(t, p.accessClaims())
	for name, authorization := range map[string]string{
		"id token": "Bearer " + id, "access token": "Bearer " + access,
		"no scheme": id, "lower case": "bearer " + id, "upper case": "BEARER " + id, "spaces": "  Bearer   " + id + " ",
		"within the leeway":            p.sign(t, with(p.idClaims(), "exp", p.now.Add(-10*time.Second).Unix())),
		"issued a second in future":    p.sign(t, with(p.idClaims(), "iat", p.now.Add(time.Second).Unix())),
		"audience as a list of itself": p.sign(t, with(p.idClaims(), "aud", []string{clientID})),
	} {
		t.Run(name, func(t *testing.T) {
			claims, err := v.Verify(t.Context(), authorization)
			require.NoError(t, err)
			require.Equal(t, "0199-sub", claims["sub"])
			again, err := v.Verify(t.Context(), authorization)
			require.NoError(t, err)
			require.Equal(t, claims, again)
		})
	}
	claims, err := v.Verify(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, "alice@acme.test", claims.Caller().Email)
	claims["email"] = "mallory@evil.test"
	claims, err = v.Verify(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, "alice@acme.test", claims["email"], "a caller that writes into its claims must not change another's")
}

func TestVerifyRefuses(t *testing.T) {
	p := newFakePool(t)
	v := p.verifier(t, nil)
	good := p.sign(t, p.idClaims())
	parts := strings.Split(good, ".")
	foreign := newKey(t)
	publicPEM, err := x509.MarshalPKIXPublicKey(&p.key().PublicKey)
	require.NoError(t, err)
	publicPEM = pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: publicPEM})
	id, access := p.idClaims(), p.accessClaims()

	for name, c := range map[string]struct{ token, reason string }{
		"empty":           {"", "no token"},
		"scheme only":     {"Bearer ", "0 dots"},
		"bare scheme":     {"Bearer", "0 dots"},
		"other scheme":    {"Basic " + good, "byte 0x20"},
		"two tokens":      {"Bearer " + good + " " + good, "byte 0x20"},
		"two schemes":     {"Bearer Bearer " + good, "byte 0x20"},
		"garbage":         {"Bearer !!!", "byte 0x21"},
		"NUL":             {"Bearer a.b.\x00", "byte 0x0"},
		"invalid UTF-8":   {"a.b.\xff", "byte 0xff"},
		"line end inside": {good[:len(good)-3] + "\n" + good[len(good)-3:], "byte 0xa"},
		"padding":         {good + "==", "byte 0x3d"},
		"two parts":       {"a.b", "1 dots"},
		"five parts":      {"a.b.c.d.e", "4 dots"},
		"empty parts":     {"..", "malformed"},
		"oversized":       {strings.Repeat("a", 16<<10+1), "bytes"},
		"header not JSON": {b64("{") + "." + parts[1] + "." + parts[2], "malformed"},
		"claims not JSON": {parts[0] + "." + b64("[]") + "." + parts[2], "malformed"},
		"no signature":    {parts[0] + "." + parts[1] + ".", "verification"},
		"other claims":    {parts[0] + "." + b64(`{"token_use":"id"}`) + "." + parts[2], "verification"},

		"alg none":                      {p.signAs(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, p.kid(), id), "signing method none"},
		"alg HS256":                     {p.signAs(t, jwt.SigningMethodHS256, []byte("secret"), p.kid(), id), "signing method HS256"},
		"alg HS256 with the public key": {p.signAs(t, jwt.SigningMethodHS256, publicPEM, p.kid(), id), "signing method HS256"},
		"alg RS512":                     {p.signAs(t, jwt.SigningMethodRS512, p.key(), p.kid(), id), "signing method RS512"},
		"alg PS256":                     {p.signAs(t, jwt.SigningMethodPS256, p.key(), p.kid(), id), "signing method PS256"},
		"foreign key":                   {p.signAs(t, jwt.SigningMethodRS256, foreign, p.kid(), id), "verification"},
		"unknown key id":                {p.signAs(t, jwt.SigningMethodRS256, foreign, "other", id), "unknown key id"},
		"no key id":                     {p.signAs(t, jwt.SigningMethodRS256, p.key(), "", id), "no key id"},
		"critical extension":            {p.signCritical(t, id), "critical"},

		"expired":            {p.sign(t, with(id, "exp", p.now.Add(-time.Minute).Unix())), "expired"},
		"no exp":             {p.sign(t, with(id, "exp", nil)), "exp claim is required"},
		"exp is text":        {p.sign(t, with(id, "exp", "tomorrow")), "exp"},
		"no iat":             {p.sign(t, with(id, "iat", nil)), "no iat"},
		"iat in the future":  {p.sign(t, with(id, "iat", p.now.Add(time.Hour).Unix())), "before issued"},
		"not valid yet":      {p.sign(t, with(id, "nbf", p.now.Add(time.Hour).Unix())), "not valid yet"},
		"other pool":         {p.sign(t, with(id, "iss", issuer+"x")), "issuer"},
		"issuer with slash":  {p.sign(t, with(id, "iss", issuer+"/")), "issuer"},
		"no issuer":          {p.sign(t, with(id, "iss", nil)), "iss"},
		"other audience":     {p.sign(t, with(id, "aud", "someone-else")), "aud is"},
		"no audience":        {p.sign(t, with(id, "aud", nil)), "aud is"},
		"one more audience":  {p.sign(t, with(id, "aud", []string{clientID, "someone-else"})), "aud is"},
		"other client":       {p.sign(t, with(access, "client_id", "someone-else")), "client_id is"},
		"no client":          {p.sign(t, with(access, "client_id", nil)), "client_id is"},
		"aud for client_id":  {p.sign(t, with(with(access, "client_id", nil), "aud", clientID)), "client_id is"},
		"client_id for aud":  {p.sign(t, with(with(id, "aud", nil), "client_id", clientID)), "aud is"},
		"no token_use":       {p.sign(t, with(id, "token_use", nil)), "token_use is"},
		"token_use refresh":  {p.sign(t, with(id, "token_use", "refresh")), "token_use is"},
		"token_use a number": {p.sign(t, with(id, "token_use", 1)), "token_use is"},
		"no subject":         {p.sign(t, with(id, "sub", nil)), "no sub"},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 { // a refusal is not remembered as something else
				claims, err := v.Verify(t.Context(), c.token)
				require.Nil(t, claims)
				require.EqualError(t, err, "missing or invalid token")
				require.Equal(t, fault.Unauthorized, fault.From(err).Type)
				require.Equal(t, "missing or invalid token", fault.From(err).Message)
				require.ErrorContains(t, errors.Unwrap(err), c.reason)
			}
		})
	}
}

func TestRememberedTokenExpires(t *testing.T) {
	p := newFakePool(t)
	v := p.verifier(t, nil)
	token := p.sign(t, p.idClaims())
	_, err := v.Verify(t.Context(), token)
	require.NoError(t, err)
	p.advance(time.Hour + time.Minute)
	_, err = v.Verify(t.Context(), token)
	require.ErrorContains(t, errors.Unwrap(err), "expired")
}

func TestConfig(t *testing.T) {
	for _, c := range []identity.Config{
		{}, {Issuer: issuer}, {ClientID: clientID}, {Issuer: "pool", ClientID: clientID}, {Issuer: issuer, ClientID: clientID, JWKSURL: "file:///etc"},
	} {
		_, err := identity.New(c)
		require.Error(t, err)
	}
}

// FuzzVerify: whatever comes, no panic, one uniform refusal; only the exact tokens that the pool signed are accepted.
func FuzzVerify(f *testing.F) {
	p := newFakePool(f)
	v := p.verifier(f, func(c *identity.Config) { c.Remember = 8 })
	id, access := p.sign(f, p.idClaims()), p.sign(f, p.accessClaims())
	for _, s := range []string{id, "Bearer " + access, "", "Bearer", "..", id + "=", id[:len(id)-1], strings.Replace(id, ".", "..", 1),
		p.signAs(f, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, p.kid(), p.idClaims())} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, authorization string) {
		claims, err := v.Verify(context.Background(), authorization)
		if err == nil {
			fields := strings.Fields(authorization)
			require.Contains(t, []string{id, access}, fields[len(fields)-1])
			require.NotEmpty(t, claims)
			return
		}
		require.Nil(t, claims)
		require.Equal(t, fault.Unauthorized, fault.From(err).Type)
		require.EqualError(t, err, "missing or invalid token")
	})
}

func BenchmarkVerify(b *testing.B) {
	p := newFakePool(b)
	for name, remember := range map[string]int{"remembered": 0, "in full": -1} {
		b.Run(name, func(b *testing.B) {
			v := p.verifier(b, func(c *identity.Config) { c.Remember = remember })
			token := "Bearer " + p.sign(b, p.idClaims())
			b.ReportAllocs()
			for b.Loop() {
				if _, err := v.Verify(b.Context(), token); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func with(claims jwt.MapClaims, name string, value any) jwt.MapClaims {
	c := maps.Clone(claims)
	if c[name] = value; value == nil {
		delete(c, name)
	}
	return c
}

func b64(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

func newKey(t testing.TB) *rsa.PrivateKey {
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	return k
}
