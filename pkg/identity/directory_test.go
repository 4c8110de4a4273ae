package identity_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	provider "github.com/aws/aws-sdk-go-v2/service/cognitoidentityprovider"
	"github.com/aws/aws-sdk-go-v2/service/cognitoidentityprovider/types"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/cloud/cognito"
	"github.com/agentplatform/agentplatform/pkg/identity"
	"github.com/agentplatform/agentplatform/pkg/local/pool"
	"github.com/agentplatform/agentplatform/test/moto"
)

const secret = "Correct-horse-7-battery"

// directory is one under test, and the wire API that its users sign in by.
type directory struct {
	identity.Directory
	client   *provider.Client
	clientID string
	settle   func(t *testing.T, email string) // takes the invitation: the user's password is secret from here on
}

func client(endpoint string) *provider.Client {
	return provider.New(provider.Options{Region: "us-east-1", BaseEndpoint: &endpoint, RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("key", "secret", "")})
}

func localDirectory(t *testing.T) directory {
	server := httptest.NewUnstartedServer(nil)
	url := "http://" + server.Listener.Addr().String()
	p, err := pool.New(pool.Config{Dir: t.TempDir(), BaseURL: url, Password: secret, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	server.Config.Handler = p.Handler()
	server.Start()
	t.Cleanup(func() {
		server.Close()
		require.NoError(t, p.Close())
	})
	return directory{p, client(url), p.ClientID(), func(*testing.T, string) {}}
}

// wireDirectory is the Cognito adapter at the local pool.
func wireDirectory(t *testing.T) directory {
	d := localDirectory(t)
	p := d.Directory.(*pool.Pool)
	server := httptest.NewServer(p.Admin())
	t.Cleanup(server.Close)
	d.Directory = cognito.Directory{Client: client(server.URL), PoolID: p.ID()}
	return d
}

func cognitoDirectory(t *testing.T) directory {
	c := client(moto.Start(t))
	made, err := c.CreateUserPool(t.Context(), &provider.CreateUserPoolInput{PoolName: aws.String("test"),
		UsernameAttributes:    []types.UsernameAttributeType{types.UsernameAttributeTypeEmail},
		AdminCreateUserConfig: &types.AdminCreateUserConfigType{AllowAdminCreateUserOnly: true}})
	require.NoError(t, err)
	poolID := made.UserPool.Id
	app, err := c.CreateUserPoolClient(t.Context(), &provider.CreateUserPoolClientInput{UserPoolId: poolID, ClientName: aws.String("test"),
		ExplicitAuthFlows: []types.ExplicitAuthFlowsType{types.ExplicitAuthFlowsTypeAllowUserPasswordAuth, types.ExplicitAuthFlowsTypeAllowRefreshTokenAuth}})
	require.NoError(t, err)
	return directory{cognito.Directory{Client: c, PoolID: *poolID}, c, *app.UserPoolClient.ClientId, func(t *testing.T, email string) {
		t.Helper()
		_, err := c.AdminSetUserPassword(t.Context(), &provider.AdminSetUserPasswordInput{UserPoolId: poolID, Username: &email, Password: aws.String(secret), Permanent: true})
		require.NoError(t, err)
	}}
}

func (d directory) auth(t *testing.T, flow types.AuthFlowType, parameters map[string]string) (refresh string, err error) {
	t.Helper()
	out, err := d.client.InitiateAuth(t.Context(), &provider.InitiateAuthInput{AuthFlow: flow, ClientId: &d.clientID, AuthParameters: parameters})
	if err != nil {
		return "", err
	}
	require.NotNil(t, out.AuthenticationResult, "challenge %s", out.ChallengeName)
	return aws.ToString(out.AuthenticationResult.RefreshToken), nil
}

func (d directory) signIn(t *testing.T, email string) (refresh string, err error) {
	t.Helper()
	return d.auth(t, types.AuthFlowTypeUserPasswordAuth, map[string]string{"USERNAME": email, "PASSWORD": secret})
}

func (d directory) renew(t *testing.T, refresh string) error {
	t.Helper()
	_, err := d.auth(t, types.AuthFlowTypeRefreshTokenAuth, map[string]string{"REFRESH_TOKEN": refresh})
	return err
}

// A Directory is the same wherever it is: what the one adapter promises, the other does.
func TestDirectoryContract(t *testing.T) {
	for name, open := range map[string]func(*testing.T) directory{"local": localDirectory, "local, over the wire": wireDirectory, "cognito": cognitoDirectory} {
		t.Run(name, func(t *testing.T) { contract(t, open(t)) })
	}
}

func contract(t *testing.T, d directory) {
	const max, eve = "max@acme.test", "eve@acme.test"
	twice := func(what func() error) { // everything is idempotent
		t.Helper()
		require.NoError(t, what())
		require.NoError(t, what())
	}
	invite := func(email string) {
		t.Helper()
		twice(func() error { return d.Invite(t.Context(), email) })
		d.settle(t, email)
		require.NoError(t, d.Invite(t.Context(), email), "one who took the invitation")
	}
	in := func(email string) string {
		t.Helper()
		refresh, err := d.signIn(t, email)
		require.NoError(t, err)
		require.NoError(t, d.renew(t, refresh))
		return refresh
	}

	// Nobody is there.
	_, err := d.signIn(t, max)
	require.Error(t, err)
	twice(func() error { return d.SignOut(t.Context(), max) })
	twice(func() error { return d.Disable(t.Context(), max) })
	twice(func() error { return d.Delete(t.Context(), max) })

	invite(max)
	invite(eve)
	first, second, eves := in(max), in(max), in(eve)

	twice(func() error { return d.SignOut(t.Context(), max) })
	require.Error(t, d.renew(t, first))
	require.Error(t, d.renew(t, second))
	third := in(max)

	twice(func() error { return d.Disable(t.Context(), max) })
	_, err = d.signIn(t, max)
	var refused *types.NotAuthorizedException
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "User is disabled.", refused.ErrorMessage())
	require.Error(t, d.renew(t, third))

	require.NoError(t, d.Invite(t.Context(), max))
	require.Error(t, d.renew(t, third), "what was ended stays so")
	fourth := in(max)

	twice(func() error { return d.Delete(t.Context(), max) })
	_, err = d.signIn(t, max)
	require.Error(t, err)
	require.Error(t, d.renew(t, fourth))
	invite(max)
	in(max)
	require.NoError(t, d.renew(t, eves), "nobody else was meant")
}

func TestCognitoInvitesAVerifiedAddress(t *testing.T) {
	d := cognitoDirectory(t)
	pool := d.Directory.(cognito.Directory).PoolID
	require.NoError(t, d.Invite(t.Context(), "max@acme.test"))
	user, err := d.client.AdminGetUser(t.Context(), &provider.AdminGetUserInput{UserPoolId: &pool, Username: aws.String("max@acme.test")})
	require.NoError(t, err)
	require.Equal(t, types.UserStatusTypeForceChangePassword, user.UserStatus)
	found := map[string]string{}
	for _, a := range user.UserAttributes {
		found[*a.Name] = *a.Value
	}
	require.Equal(t, "max@acme.test", found["email"])
	require.Equal(t, "true", found["email_verified"])

	// Only what is not there is passed over.
	elsewhere := cognito.Directory{Client: d.client, PoolID: "us-east-1_nowhere"}
	for _, operation := range []func() error{
		func() error { return elsewhere.Invite(t.Context(), "max@acme.test") },
		func() error { return elsewhere.Disable(t.Context(), "max@acme.test") },
		func() error { return elsewhere.Delete(t.Context(), "max@acme.test") },
		func() error { return elsewhere.SignOut(t.Context(), "max@acme.test") },
	} {
		var missing *types.ResourceNotFoundException
		require.True(t, errors.As(operation(), &missing))
	}
}

// A transaction waits for the pool, and its tenant's sign-ins for the transaction: a pool that does not answer ends both soon.
func TestAPoolThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts, and nobody answers
	require.NoError(t, err)
	defer silent.Close()
	pool := cognito.Directory{Client: client("http://" + silent.Addr().String()), PoolID: "us-east-1_x"}
	require.ErrorIs(t, pool.SignOut(context.WithoutCancel(t.Context()), "ada@acme.test"), context.DeadlineExceeded)
}
