package pool_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cognitoidentityprovider/types"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/local/pool"
)

func TestRestartKeepsEverything(t *testing.T) {
	l := start(t, nil)
	kept, err := l.signIn(t.Context(), "alice@acme.test", password)
	require.NoError(t, err)
	ended, err := l.signIn(t.Context(), "alice@acme.test", password)
	require.NoError(t, err)
	_, body := l.post(t, "/", amzJSON, "AWSCognitoIdentityProviderService.RevokeToken", `{"ClientId":"`+l.ClientID()+`","Token":"`+*ended.RefreshToken+`"}`)
	require.Equal(t, "{}\n", body)
	id, client, alice := l.ID(), l.ClientID(), l.alice
	require.Regexp(t, regexp.MustCompile(`^us-east-1_[0-9A-Za-z]{9}$`), id)
	require.Regexp(t, regexp.MustCompile(`^[0-9a-z]{26}$`), client)

	for range 2 { // the second start reads what the first has rewritten
		require.NoError(t, l.Close())
		l.open(t)
		require.Equal(t, id, l.ID())
		require.Equal(t, client, l.ClientID())
		require.Equal(t, alice, l.alice)
		require.Equal(t, alice.Sub, l.claims(t, *kept.IdToken)["sub"], "the key is the same")
		got, err := l.renew(t.Context(), types.AuthFlowTypeRefreshTokenAuth, *kept.RefreshToken)
		require.NoError(t, err)
		require.Equal(t, "0199-tenant", l.claims(t, *got.IdToken)["custom:tenant_id"])
		_, err = l.renew(t.Context(), types.AuthFlowTypeRefreshTokenAuth, *ended.RefreshToken)
		require.Error(t, err, "a revoked token stays revoked")
	}

	files, err := os.ReadDir(l.config.Dir)
	require.NoError(t, err)
	require.Len(t, files, 3, "no temporary files are left")
	for _, f := range files {
		info, err := f.Info()
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), f.Name())
		raw, err := os.ReadFile(filepath.Join(l.config.Dir, f.Name()))
		require.NoError(t, err)
		for _, secret := range []string{*kept.RefreshToken, *kept.AccessToken, password} {
			require.NotContains(t, string(raw), secret, f.Name())
		}
	}
}

func TestExpiredSessionsAreDroppedAtStart(t *testing.T) {
	l := start(t, nil)
	_, err := l.signIn(t.Context(), "alice@acme.test", password)
	require.NoError(t, err)
	require.NoError(t, l.Close())
	l.advance(31 * 24 * time.Hour)
	l.open(t)
	raw, err := os.ReadFile(filepath.Join(l.config.Dir, "sessions.ndjson"))
	require.NoError(t, err)
	require.Empty(t, raw)
}

func TestTornLastLine(t *testing.T) {
	l := start(t, nil)
	first, err := l.signIn(t.Context(), "alice@acme.test", password)
	require.NoError(t, err)
	second, err := l.signIn(t.Context(), "alice@acme.test", password)
	require.NoError(t, err)
	require.NoError(t, l.Close())
	path := filepath.Join(l.config.Dir, "sessions.ndjson")
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, 2, bytes.Count(raw, []byte("\n")))
	require.NoError(t, os.WriteFile(path, raw[:len(raw)-40], 0o600))
	l.open(t)
	_, err = l.renew(t.Context(), types.AuthFlowTypeRefreshTokenAuth, *first.RefreshToken)
	require.NoError(t, err)
	_, err = l.renew(t.Context(), types.AuthFlowTypeRefreshTokenAuth, *second.RefreshToken)
	require.Error(t, err)
	_, err = l.signIn(t.Context(), "alice@acme.test", password)
	require.NoError(t, err)
	require.NoError(t, l.Close())
	l.open(t)
}

func TestDamagedFilesSayWhatToDo(t *testing.T) {
	for file, content := range map[string]string{
		"pool.json": "{", "signing-key.pem": "not a key", "sessions.ndjson": "{\"begin\":{}}\nnonsense\n",
	} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600))
		_, err := pool.New(pool.Config{Dir: dir, BaseURL: "http://127.0.0.1:8787", Password: password})
		require.ErrorContains(t, err, file)
		require.ErrorContains(t, err, "remove")
		require.False(t, strings.Contains(err.Error(), "\n"))
	}
	_, err := pool.New(pool.Config{Dir: "/dev/null/pool", BaseURL: "http://127.0.0.1:8787", Password: password})
	require.Error(t, err)
	require.NotNil(t, errors.Unwrap(err))
}

func TestANewPasswordCountsFromTheNextStart(t *testing.T) {
	l := start(t, nil)
	require.NoError(t, l.Close())
	l.config.Password = "another one"
	l.open(t)
	_, err := l.signIn(t.Context(), "alice@acme.test", password)
	require.Error(t, err)
	_, err = l.signIn(t.Context(), "alice@acme.test", "another one")
	require.NoError(t, err)
}

func TestNoTokenWithoutAStoredSession(t *testing.T) {
	l := start(t, nil)
	require.NoError(t, l.Close()) // as a full disk: the journal can not be written
	resp, body := l.post(t, "/", amzJSON, "AWSCognitoIdentityProviderService.InitiateAuth",
		`{"AuthFlow":"USER_PASSWORD_AUTH","ClientId":"`+l.ClientID()+`","AuthParameters":{"USERNAME":"alice@acme.test","PASSWORD":"`+password+`"}}`)
	require.Equal(t, 500, resp.StatusCode)
	require.JSONEq(t, `{"__type":"InternalErrorException","message":"Something went wrong"}`, body)
}
