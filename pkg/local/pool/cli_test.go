package pool_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// cli runs the real aws command against the pool, with no credentials and no configuration of the machine's user.
func (l *local) cli(t *testing.T, args ...string) (string, error) {
	bin, err := exec.LookPath("aws")
	require.NoError(t, err, "this test needs the aws command: install the AWS CLI")
	none := filepath.Join(t.TempDir(), "none")
	cmd := exec.CommandContext(t.Context(), bin, append([]string{"cognito-idp", "--endpoint-url", l.url, "--region", "us-east-1", "--output", "json"}, args...)...)
	cmd.Env = append(cmd.Environ(), "AWS_CONFIG_FILE="+none, "AWS_SHARED_CREDENTIALS_FILE="+none, "AWS_PAGER=", "AWS_EC2_METADATA_DISABLED=true", "AWS_MAX_ATTEMPTS=1")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestCLI(t *testing.T) {
	l := start(t, nil)
	type answer struct {
		AuthenticationResult struct{ AccessToken, IdToken, RefreshToken string }
	}
	var got answer
	out, err := l.cli(t, "initiate-auth", "--auth-flow", "USER_PASSWORD_AUTH", "--client-id", l.ClientID(),
		"--auth-parameters", "USERNAME=alice@acme.test,PASSWORD="+password)
	require.NoError(t, err, out)
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	require.Equal(t, "alice@acme.test", l.claims(t, got.AuthenticationResult.IdToken)["email"])
	require.Equal(t, "access", l.claims(t, got.AuthenticationResult.AccessToken)["token_use"])

	out, err = l.cli(t, "initiate-auth", "--auth-flow", "USER_PASSWORD_AUTH", "--client-id", l.ClientID(),
		"--auth-parameters", "USERNAME=alice@acme.test,PASSWORD=wrong")
	require.Error(t, err)
	require.Contains(t, out, "An error occurred (NotAuthorizedException) when calling the InitiateAuth operation: Incorrect username or password.")

	refresh := got.AuthenticationResult.RefreshToken
	out, err = l.cli(t, "initiate-auth", "--auth-flow", "REFRESH_TOKEN_AUTH", "--client-id", l.ClientID(), "--auth-parameters", "REFRESH_TOKEN="+refresh)
	require.NoError(t, err, out)
	got = answer{}
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	require.Equal(t, "0199-tenant", l.claims(t, got.AuthenticationResult.IdToken)["custom:tenant_id"])
	require.Empty(t, got.AuthenticationResult.RefreshToken)

	out, err = l.cli(t, "get-user", "--access-token", got.AuthenticationResult.AccessToken)
	require.NoError(t, err, out)
	require.Contains(t, out, "alice@acme.test")

	out, err = l.cli(t, "initiate-auth", "--auth-flow", "USER_PASSWORD_AUTH", "--client-id", "nobodysclient", "--auth-parameters", "USERNAME=a,PASSWORD=b")
	require.Error(t, err)
	require.Contains(t, out, "ResourceNotFoundException")

	out, err = l.cli(t, "sign-up", "--client-id", l.ClientID(), "--username", "eve@acme.test", "--password", "x")
	require.Error(t, err)
	require.Contains(t, out, "UnknownOperationException")
}
