package e2e

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
)

// forger makes tokens like the pool's own, from a real one and the pool's key.
type forger struct {
	key    *rsa.PrivateKey
	header map[string]any
	claims jwt.MapClaims
}

func newForger(t testing.TB, u *user) forger {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(u.dir, "identity", "signing-key.pem"))
	require.NoError(t, err)
	block, _ := pem.Decode(raw)
	require.NotNil(t, block)
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	require.NoError(t, err)
	claims := jwt.MapClaims{}
	token, _, err := jwt.NewParser().ParseUnverified(u.tokens.IdToken, claims)
	require.NoError(t, err)
	return forger{key: key.(*rsa.PrivateKey), header: token.Header, claims: claims}
}

// sign signs the real token's claims with some changed; nil takes a claim away.
func (f forger) sign(t testing.TB, method jwt.SigningMethod, key any, change jwt.MapClaims) string {
	t.Helper()
	claims := jwt.MapClaims{}
	for _, from := range []jwt.MapClaims{f.claims, change} {
		for name, value := range from {
			if claims[name] = value; value == nil {
				delete(claims, name)
			}
		}
	}
	token := jwt.NewWithClaims(method, claims)
	token.Header["kid"] = f.header["kid"]
	signed, err := token.SignedString(key)
	require.NoError(t, err)
	return signed
}

func (f forger) changed(t testing.TB, change jwt.MapClaims) string {
	t.Helper()
	return f.sign(t, jwt.SigningMethodRS256, f.key, change)
}

// badTokens are none of the pool's, or no longer.
func badTokens(t testing.TB, u *user, other *platform) map[string]string {
	f := newForger(t, u)
	_, err := post(plainClient, u.Outputs.APIURL+"/graphql", f.changed(t, nil), "application/json", strings.NewReader(request(`{ __typename }`, nil)))
	require.NoError(t, err, "the forger's tokens are good as long as nothing is changed")
	stranger, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	public, err := x509.MarshalPKIXPublicKey(&f.key.PublicKey)
	require.NoError(t, err)
	publicPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
	good := u.tokens.IdToken
	parts := strings.Split(good, ".")
	raise, err := json.Marshal(func() jwt.MapClaims { c := f.claims; c["custom:role"] = "admin"; return c }())
	require.NoError(t, err)
	hour := time.Hour
	at := func(d time.Duration) int64 { return time.Now().Add(d).Unix() }
	return map[string]string{
		"none": "", "garbage": "garbage", "two dots": "..", "a NUL": "\x00", "half of a good one": good[:len(good)/2], "a good one and more": good + "x",
		"a good one twice":                         good + " " + good,
		"alg none":                                 f.sign(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, nil),
		"alg none with a signature":                f.sign(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, nil) + parts[2],
		"HS256 by the public key":                  f.sign(t, jwt.SigningMethodHS256, publicPEM, nil),
		"HS256 by the public key's bytes":          f.sign(t, jwt.SigningMethodHS256, public, nil),
		"RS512":                                    f.sign(t, jwt.SigningMethodRS512, f.key, nil),
		"PS256":                                    f.sign(t, jwt.SigningMethodPS256, f.key, nil),
		"another key under the same key id":        f.sign(t, jwt.SigningMethodRS256, stranger, nil),
		"another payload under the same signature": parts[0] + "." + base64.RawURLEncoding.EncodeToString(raise) + "." + parts[2],
		"expired":                                  f.changed(t, jwt.MapClaims{"exp": at(-hour), "iat": at(-2 * hour)}),
		"without an end":                           f.changed(t, jwt.MapClaims{"exp": nil}),
		"not yet valid":                            f.changed(t, jwt.MapClaims{"nbf": at(hour)}),
		"issued in the future":                     f.changed(t, jwt.MapClaims{"iat": at(hour)}),
		"another issuer":                           f.changed(t, jwt.MapClaims{"iss": u.Outputs.APIURL + "/us-east-1_other"}),
		"no issuer":                                f.changed(t, jwt.MapClaims{"iss": nil}),
		"another app's":                            f.changed(t, jwt.MapClaims{"aud": "anotherclient"}),
		"no use":                                   f.changed(t, jwt.MapClaims{"token_use": nil}),
		"a refresh token's use":                    f.changed(t, jwt.MapClaims{"token_use": "refresh"}),
		"a refresh token":                          u.tokens.RefreshToken,
		"another platform's":                       other.as(t, "alice").tokens.IdToken,
		"another platform's access token":          other.as(t, "alice").tokens.AccessToken,
	}
}

// TestBadTokens: a token that is not good is 401 on both ports and at the socket, and nothing behind it is touched.
func TestBadTokens(t *testing.T) {
	t.Parallel()
	p := sharedPlatform(t)
	other := startPlatform(t)
	alice := p.as(t, "alice")
	secure := p.tlsClient(t)
	const title = "by a bad token"
	for name, token := range badTokens(t, alice, other) {
		t.Run(name, func(t *testing.T) {
			for url, client := range map[string]*http.Client{p.Outputs.APIURL: plainClient, p.Outputs.AppSyncURL: secure} {
				if strings.ContainsRune(token, 0) {
					continue // no HTTP client sends it
				}
				a, err := post(client, url+"/graphql", token, "application/json", strings.NewReader(request(create, vars{"input": vars{"title": title}})))
				require.NoError(t, err)
				require.Equal(t, http.StatusUnauthorized, a.Status, a.Raw)
				require.Equal(t, "Unauthorized", member([]byte(a.Raw), "message"))
				require.Equal(t, "Unauthorized", a.Errors[0].ErrorType)
				requireNoLeak(t, a.Raw)
			}
			ctx, cancel := context.WithTimeout(t.Context(), waitTime)
			defer cancel()
			_, err := p.dial(ctx, secure, token)
			require.Error(t, err, "the socket's handshake")
			conn, err := p.dial(ctx, secure, alice.tokens.AccessToken)
			require.NoError(t, err)
			defer conn.CloseNow()
			err = begin(ctx, conn, "1", token, request(`subscription { onThreadEvent(threadId: "CHAT-1") { __typename } }`, nil))
			require.ErrorContains(t, err, "Unauthorized", "the subscription's own token")
		})
	}
	a := alice.query(t, `{ listThreads(limit: 100) { items { title } } }`, nil)
	require.NotContains(t, a.Raw, title)
}

// TestTokensThatAreGoodButAllowNothing: who belongs to no tenant is Forbidden everywhere, but for an operator's own operations.
func TestTokensThatAreGoodButAllowNothing(t *testing.T) {
	t.Parallel()
	p := sharedPlatform(t)
	ask := func(token, query string) string {
		a, err := post(plainClient, p.Outputs.APIURL+"/graphql", token, "application/json", strings.NewReader(request(query, nil)))
		require.NoError(t, err)
		return fmt.Sprint(a.Status, " ", a.problem())
	}
	const audit = `{ complianceEventByHash(eventHash: "0000000000000000000000000000000000000000000000000000000000000000") { eventId } }`
	nobody := jwt.MapClaims{"custom:tenant_id": nil, "custom:tenant_slug": nil, "custom:role": nil, "custom:user_id": nil}

	alice, ops := newForger(t, p.as(t, "alice")), newForger(t, p.as(t, "ops"))
	for _, query := range []string{`{ listThreads { nextToken } }`, `{ listAgents { nextToken } }`, `{ getThread(id: "CHAT-1") { id } }`,
		`mutation { createThread(input: {}) { id } }`, `mutation { createAgent(input: {name: "x"}) { id } }`,
		`mutation { sendMessage(input: {threadId: "CHAT-1", body: "x"}) { id } }`, audit} {
		require.Contains(t, ask(alice.changed(t, nobody), query), "403 Forbidden", query)
	}
	require.Contains(t, ask(ops.changed(t, nobody), audit), "404 NotFound")
	require.Contains(t, ask(ops.changed(t, nobody), `{ listThreads { nextToken } }`), "403 Forbidden")
	require.Contains(t, ask(ops.changed(t, jwt.MapClaims{"email_verified": false}), audit), "403 Forbidden")
	require.Contains(t, ask(alice.changed(t, jwt.MapClaims{"email": "ops@acme.test", "email_verified": "false"}), audit), "403 Forbidden")
}

// TestSignInRefusals: what the pool refuses has Cognito's typed errors, and does not say whether there is such a user.
func TestSignInRefusals(t *testing.T) {
	t.Parallel()
	p := sharedPlatform(t)
	_, wrong := p.signInErr("USER_PASSWORD_AUTH", map[string]string{"USERNAME": "alice@acme.test", "PASSWORD": "wrong"})
	_, unknown := p.signInErr("USER_PASSWORD_AUTH", map[string]string{"USERNAME": "eve@acme.test", "PASSWORD": "wrong"})
	require.EqualError(t, wrong, unknown.Error())
	require.ErrorContains(t, wrong, "NotAuthorizedException")
	_, err := p.signInErr("REFRESH_TOKEN_AUTH", map[string]string{"REFRESH_TOKEN": "garbage"})
	require.ErrorContains(t, err, "NotAuthorizedException")
	_, err = p.signInErr("USER_PASSWORD_AUTH", map[string]string{"USERNAME": "a\x00b", "PASSWORD": "x\x00"})
	require.ErrorContains(t, err, "Exception")
	_, err = p.signInErr("USER_SRP_AUTH", map[string]string{"USERNAME": "alice@acme.test"})
	require.ErrorContains(t, err, "Exception")
}
