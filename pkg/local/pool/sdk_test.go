package pool_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	cognito "github.com/aws/aws-sdk-go-v2/service/cognitoidentityprovider"
	"github.com/aws/aws-sdk-go-v2/service/cognitoidentityprovider/types"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/local/pool"
)

func (l *local) sdk() *cognito.Client {
	return cognito.New(cognito.Options{Region: "us-east-1", BaseEndpoint: &l.url, Credentials: aws.AnonymousCredentials{}})
}

func (l *local) signIn(ctx context.Context, username, password string) (*types.AuthenticationResultType, error) {
	out, err := l.sdk().InitiateAuth(ctx, &cognito.InitiateAuthInput{AuthFlow: types.AuthFlowTypeUserPasswordAuth, ClientId: aws.String(l.ClientID()),
		AuthParameters: map[string]string{"USERNAME": username, "PASSWORD": password}})
	if err != nil {
		return nil, err
	}
	return out.AuthenticationResult, nil
}

func (l *local) renew(ctx context.Context, flow types.AuthFlowType, refresh string) (*types.AuthenticationResultType, error) {
	out, err := l.sdk().InitiateAuth(ctx, &cognito.InitiateAuthInput{AuthFlow: flow, ClientId: aws.String(l.ClientID()),
		AuthParameters: map[string]string{"REFRESH_TOKEN": refresh}})
	if err != nil {
		return nil, err
	}
	return out.AuthenticationResult, nil
}

func TestSignIn(t *testing.T) {
	l := start(t, nil)
	for _, username := range []string{"alice@acme.test", "Alice@Acme.TEST", l.alice.Sub} {
		got, err := l.signIn(t.Context(), username, password)
		require.NoError(t, err)
		require.Equal(t, int32(3600), got.ExpiresIn)
		require.Equal(t, "Bearer", *got.TokenType)
		require.NotEmpty(t, *got.RefreshToken)

		id, access := l.claims(t, *got.IdToken), l.claims(t, *got.AccessToken)
		for _, c := range []map[string]any{id, access} {
			require.Equal(t, l.alice.Sub, c["sub"])
			require.Equal(t, l.url+"/"+l.ID(), c["iss"])
			require.Equal(t, float64(3600), c["exp"].(float64)-c["iat"].(float64))
			require.Equal(t, c["auth_time"], c["iat"])
			require.Equal(t, "0199-tenant", c["custom:tenant_id"])
			require.Equal(t, "acme", c["custom:tenant_slug"])
			require.Equal(t, "owner", c["custom:role"])
			require.Equal(t, "alice@acme.test", c["email"])
			require.Equal(t, true, c["email_verified"])
			require.NotEmpty(t, c["jti"])
		}
		require.Equal(t, "id", id["token_use"])
		require.Equal(t, l.ClientID(), id["aud"])
		require.Equal(t, l.alice.Sub, id["cognito:username"])
		require.NotContains(t, id, "client_id")
		require.Equal(t, "access", access["token_use"])
		require.Equal(t, l.ClientID(), access["client_id"])
		require.Equal(t, l.alice.Sub, access["username"])
		require.Equal(t, "aws.cognito.signin.user.admin", access["scope"])
		require.Equal(t, float64(2), access["version"])
		require.NotContains(t, access, "aud")
		require.Equal(t, id["origin_jti"], access["origin_jti"])
		require.Equal(t, id["event_id"], access["event_id"])
		require.NotEqual(t, id["jti"], access["jti"])
	}
}

func TestSignInWithoutATenant(t *testing.T) {
	l := start(t, nil)
	got, err := l.signIn(t.Context(), "stray@nowhere.test", password)
	require.NoError(t, err)
	for _, token := range []string{*got.IdToken, *got.AccessToken} {
		require.Empty(t, l.claims(t, token).Caller().TenantID)
		require.NotContains(t, l.claims(t, token), "custom:tenant_id")
	}
	require.Equal(t, false, l.claims(t, *got.IdToken)["email_verified"])
}

func TestWrongPasswordAndUnknownUserAreOneAnswer(t *testing.T) {
	l := start(t, nil)
	var refused *types.NotAuthorizedException
	for _, try := range [][2]string{{"alice@acme.test", "wrong"}, {"nobody@acme.test", password}, {"alice@acme.test", password + " "}, {"nobody", "x"}} {
		_, err := l.signIn(t.Context(), try[0], try[1])
		require.ErrorAs(t, err, &refused)
		require.Equal(t, "Incorrect username or password.", *refused.Message)
	}
}

func TestRefresh(t *testing.T) {
	l := start(t, nil)
	first, err := l.signIn(t.Context(), "alice@acme.test", password)
	require.NoError(t, err)
	l.advance(90 * time.Minute)
	for _, flow := range []types.AuthFlowType{types.AuthFlowTypeRefreshTokenAuth, types.AuthFlowTypeRefreshToken} {
		got, err := l.renew(t.Context(), flow, *first.RefreshToken)
		require.NoError(t, err)
		require.Nil(t, got.RefreshToken, "the refresh token is not rotated")
		id, access := l.claims(t, *got.IdToken), l.claims(t, *got.AccessToken)
		require.Equal(t, "0199-tenant", id["custom:tenant_id"])
		require.Equal(t, float64(90*60), id["iat"].(float64)-id["auth_time"].(float64))
		require.Equal(t, id["origin_jti"], access["origin_jti"])
	}
	got, err := l.sdk().GetTokensFromRefreshToken(t.Context(), &cognito.GetTokensFromRefreshTokenInput{ClientId: aws.String(l.ClientID()), RefreshToken: first.RefreshToken})
	require.NoError(t, err)
	require.Equal(t, l.alice.Sub, l.claims(t, *got.AuthenticationResult.AccessToken)["sub"])

	var refused *types.NotAuthorizedException
	_, err = l.renew(t.Context(), types.AuthFlowTypeRefreshTokenAuth, "forged")
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "Invalid Refresh Token", *refused.Message)
	_, err = l.renew(t.Context(), types.AuthFlowTypeRefreshTokenAuth, *first.AccessToken)
	require.ErrorAs(t, err, &refused)
	l.advance(30 * 24 * time.Hour)
	_, err = l.renew(t.Context(), types.AuthFlowTypeRefreshTokenAuth, *first.RefreshToken)
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "Refresh Token has expired", *refused.Message)
}

func TestGetUserRevokeAndGlobalSignOut(t *testing.T) {
	l := start(t, nil)
	c := l.sdk()
	var sessions []*types.AuthenticationResultType
	for range 3 {
		s, err := l.signIn(t.Context(), "alice@acme.test", password)
		require.NoError(t, err)
		sessions = append(sessions, s)
	}
	getUser := func(token string) (*cognito.GetUserOutput, error) {
		return c.GetUser(t.Context(), &cognito.GetUserInput{AccessToken: &token})
	}
	out, err := getUser(*sessions[0].AccessToken)
	require.NoError(t, err)
	require.Equal(t, l.alice.Sub, *out.Username)
	attributes := map[string]string{}
	for _, a := range out.UserAttributes {
		attributes[*a.Name] = *a.Value
	}
	require.Equal(t, map[string]string{"sub": l.alice.Sub, "email": "alice@acme.test", "email_verified": "true"}, attributes)

	var refused *types.NotAuthorizedException
	for _, bad := range []string{"x", *sessions[0].IdToken, *sessions[0].RefreshToken, *sessions[0].AccessToken + "x"} {
		_, err = getUser(bad)
		require.ErrorAs(t, err, &refused)
		require.Equal(t, "Invalid Access Token", *refused.Message)
	}

	revoke := func(token string) error {
		_, err := c.RevokeToken(t.Context(), &cognito.RevokeTokenInput{ClientId: aws.String(l.ClientID()), Token: &token})
		return err
	}
	require.NoError(t, revoke(*sessions[0].RefreshToken))
	require.NoError(t, revoke(*sessions[0].RefreshToken), "a second time is no error")
	require.NoError(t, revoke("never issued"))
	var unsupported *types.UnsupportedTokenTypeException
	require.ErrorAs(t, revoke(*sessions[1].AccessToken), &unsupported)
	_, err = getUser(*sessions[0].AccessToken)
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "Access Token has been revoked", *refused.Message)
	_, err = l.renew(t.Context(), types.AuthFlowTypeRefreshTokenAuth, *sessions[0].RefreshToken)
	require.ErrorAs(t, err, &refused)
	_, err = getUser(*sessions[1].AccessToken)
	require.NoError(t, err, "other sessions go on")

	_, err = c.GlobalSignOut(t.Context(), &cognito.GlobalSignOutInput{AccessToken: sessions[1].AccessToken})
	require.NoError(t, err)
	_, err = getUser(*sessions[2].AccessToken)
	require.ErrorAs(t, err, &refused)
	_, err = l.renew(t.Context(), types.AuthFlowTypeRefreshTokenAuth, *sessions[2].RefreshToken)
	require.ErrorAs(t, err, &refused)

	l.advance(2 * time.Hour)
	_, err = getUser(*sessions[2].AccessToken)
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "Access Token has expired", *refused.Message)
}

func TestTrigger(t *testing.T) {
	var mu sync.Mutex
	var seen []events.CognitoEventUserPoolsPreTokenGenV2_0
	var fail error
	l := start(t, func(c *pool.Config) {
		c.PreToken = func(_ context.Context, e events.CognitoEventUserPoolsPreTokenGenV2_0) (events.CognitoEventUserPoolsPreTokenGenV2_0, error) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, e)
			d := &e.Response.ClaimsAndScopeOverrideDetails
			d.IDTokenGeneration.ClaimsToAddOrOverride = map[string]any{"n": 7, "list": []string{"a"}, "sub": "forged", "iss": "forged", "token_use": "access"}
			d.IDTokenGeneration.ClaimsToSuppress = []string{"email", "exp"}
			d.AccessTokenGeneration.ClaimsToAddOrOverride = map[string]any{"client_id": "forged", "extra": "yes"}
			d.AccessTokenGeneration.ScopesToAdd = []string{"threads/write"}
			d.GroupOverrideDetails.GroupsToOverride = []string{"staff"}
			return e, fail
		}
	})
	got, err := l.signIn(t.Context(), "alice@acme.test", password)
	require.NoError(t, err)
	id, access := l.claims(t, *got.IdToken), l.claims(t, *got.AccessToken)
	require.Equal(t, l.alice.Sub, id["sub"])
	require.Equal(t, float64(7), id["n"])
	require.Equal(t, []any{"a"}, id["list"])
	require.Equal(t, []any{"staff"}, id["cognito:groups"])
	require.NotContains(t, id, "email")
	require.Equal(t, "yes", access["extra"])
	require.Equal(t, "aws.cognito.signin.user.admin threads/write", access["scope"])
	_, err = l.renew(t.Context(), types.AuthFlowTypeRefreshTokenAuth, *got.RefreshToken)
	require.NoError(t, err)

	require.Len(t, seen, 2)
	require.Equal(t, "TokenGeneration_Authentication", seen[0].TriggerSource)
	require.Equal(t, "TokenGeneration_RefreshTokens", seen[1].TriggerSource)
	require.Equal(t, "2", seen[0].Version)
	require.Equal(t, l.ID(), seen[0].UserPoolID)
	require.Equal(t, "us-east-1", seen[0].Region)
	require.Equal(t, l.ClientID(), seen[0].CallerContext.ClientID)
	require.Equal(t, l.alice.Sub, seen[0].UserName)
	require.Equal(t, map[string]string{"sub": l.alice.Sub, "email": "alice@acme.test", "email_verified": "true", "cognito:user_status": "CONFIRMED"}, seen[0].Request.UserAttributes)
	require.Equal(t, []string{"aws.cognito.signin.user.admin"}, seen[0].Request.Scopes)

	var failed *types.UserLambdaValidationException
	fail = errTrigger
	_, err = l.signIn(t.Context(), "alice@acme.test", password)
	require.ErrorAs(t, err, &failed)
	require.Equal(t, "PreTokenGeneration failed with error internal error.", *failed.Message, "the cause is for the log")
	fail = fault.New(fault.Forbidden, "this user is disabled")
	_, err = l.renew(t.Context(), types.AuthFlowTypeRefreshTokenAuth, *got.RefreshToken)
	require.ErrorAs(t, err, &failed)
	require.Equal(t, "PreTokenGeneration failed with error this user is disabled.", *failed.Message)
}

func TestConcurrentSignIns(t *testing.T) {
	l := start(t, nil)
	var wg sync.WaitGroup
	for i := range 24 {
		wg.Go(func() {
			if i%8 == 7 {
				if _, err := l.AddUser(fmt.Sprintf("user-%d@acme.test", i), "", true); err != nil {
					t.Error(err)
				}
			}
			got, err := l.signIn(t.Context(), "alice@acme.test", password)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := l.renew(t.Context(), types.AuthFlowTypeRefreshTokenAuth, *got.RefreshToken); err != nil {
				t.Error(err)
			}
			if _, err := l.verifier.Verify(t.Context(), *got.AccessToken); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}
