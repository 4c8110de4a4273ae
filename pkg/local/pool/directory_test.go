package pool_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/cognitoidentityprovider/types"
	"github.com/stretchr/testify/require"
	"golang.org/x/oauth2"

	"github.com/agentplatform/agentplatform/pkg/identity"
	"github.com/agentplatform/agentplatform/pkg/local/pool"
)

var _ identity.Directory = (*pool.Pool)(nil) // its contract is tested there, beside Cognito's

// hooks remember what the pool tells.
type hooks struct {
	mu     sync.Mutex
	in     []pool.SignedIn
	failed []pool.FailedSignIn
	err    error // of the post-authentication trigger
}

func (h *hooks) install(c *pool.Config) {
	c.PostAuthentication = func(_ context.Context, e pool.SignedIn) (pool.SignedIn, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.err == nil {
			h.in = append(h.in, e)
		}
		return e, h.err
	}
	c.SignInFailed = func(_ context.Context, f pool.FailedSignIn) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.failed = append(h.failed, f)
	}
}

func (h *hooks) told() (in []pool.SignedIn, failed []pool.FailedSignIn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	in, failed, h.in, h.failed = h.in, h.failed, nil, nil
	return in, failed
}

func TestSignInsAreTold(t *testing.T) {
	var h hooks
	l := start(t, h.install)
	got, err := l.signIn(t.Context(), "Alice@ACME.test", password)
	require.NoError(t, err)
	in, failed := h.told()
	require.Empty(t, failed)
	require.Len(t, in, 1)
	e := in[0]
	require.Equal(t, "PostAuthentication_Authentication", e.TriggerSource)
	require.Equal(t, []string{"1", l.ID(), l.alice.Sub, l.ClientID()}, []string{e.Version, e.UserPoolID, e.UserName, e.CallerContext.ClientID})
	require.Equal(t, map[string]string{"sub": l.alice.Sub, "email": "alice@acme.test", "email_verified": "true", "cognito:user_status": "CONFIRMED"}, e.Request.UserAttributes)
	require.Equal(t, "127.0.0.1", e.Origin.IP)
	require.Contains(t, e.Origin.UserAgent, "aws-sdk-go-v2")

	_, err = l.renew(t.Context(), types.AuthFlowTypeRefreshTokenAuth, *got.RefreshToken)
	require.NoError(t, err)
	in, failed = h.told()
	require.Empty(t, in, "a renewal is no sign-in")
	require.Empty(t, failed)

	c, verifier := l.oauth("openid"), oauth2.GenerateVerifier()
	code := l.code(t, c, verifier).Get("code")
	in, _ = h.told()
	require.Len(t, in, 1, "told before there is a code")
	require.Equal(t, "alice@acme.test", in[0].Request.UserAttributes["email"])
	_, err = c.Exchange(t.Context(), code, oauth2.VerifierOption(verifier))
	require.NoError(t, err)
	in, _ = h.told()
	require.Empty(t, in)
}

func TestASignInThatIsNotTakenGivesNothing(t *testing.T) {
	var h hooks
	l := start(t, h.install)
	h.err = errTrigger
	_, err := l.signIn(t.Context(), "alice@acme.test", password)
	var refused *types.UserLambdaValidationException
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "PostAuthentication failed with error internal error.", refused.ErrorMessage(), "the cause is for the log")

	b := l.browser(t)
	page, body := get(t, b, l.oauth("openid").AuthCodeURL("state", oauth2.S256ChallengeOption(oauth2.GenerateVerifier())))
	answer, body := submit(t, b, page, body, "alice@acme.test", password)
	require.Equal(t, http.StatusForbidden, answer.StatusCode)
	require.Contains(t, body, "PostAuthentication failed")
}

func TestRefusedSignInsAreTold(t *testing.T) {
	var h hooks
	l := start(t, func(c *pool.Config) {
		h.install(c)
		c.MaxFailures = 3
	})
	require.NoError(t, l.Invite(t.Context(), "max@acme.test"))
	require.NoError(t, l.Disable(t.Context(), "max@acme.test"))
	for _, c := range []struct {
		username, password, answer string
		want                       pool.FailedSignIn
	}{
		{l.alice.Sub, "wrong", "Incorrect username or password.", pool.FailedSignIn{Email: "alice@acme.test", Reason: pool.WrongPassword}},
		{"Nobody@nowhere.test", "wrong", "Incorrect username or password.", pool.FailedSignIn{Email: "nobody@nowhere.test", Reason: pool.UnknownUser}},
		{"nobody@nowhere.test", password, "Incorrect username or password.", pool.FailedSignIn{Email: "nobody@nowhere.test", Reason: pool.UnknownUser}},
		{"max@acme.test", password, "User is disabled.", pool.FailedSignIn{Email: "max@acme.test", Reason: pool.DisabledUser}},
		{"max@acme.test", "wrong", "Incorrect username or password.", pool.FailedSignIn{Email: "max@acme.test", Reason: pool.WrongPassword}},
		{strings.Repeat("x", 255), "wrong", "Incorrect username or password.", pool.FailedSignIn{Reason: pool.UnknownUser}},
	} {
		_, err := l.signIn(t.Context(), c.username, c.password)
		var refused *types.NotAuthorizedException
		require.ErrorAs(t, err, &refused)
		require.Equal(t, c.answer, refused.ErrorMessage())
		in, failed := h.told()
		require.Empty(t, in)
		require.Len(t, failed, 1)
		require.Contains(t, failed[0].UserAgent, "aws-sdk-go-v2")
		c.want.Method, c.want.IP, c.want.UserAgent = "password", "127.0.0.1", failed[0].UserAgent
		require.Equal(t, c.want, failed[0])
	}

	// Tries while the name has to wait are not told: they could fill the log.
	for range 5 {
		_, err := l.signIn(t.Context(), "alice@acme.test", "wrong")
		require.Error(t, err)
	}
	_, failed := h.told()
	require.Len(t, failed, 3)
}

func TestDisabledUsersStayOutOverRestarts(t *testing.T) {
	l := start(t, nil)
	max, err := l.AddUser("max@acme.test", "", true)
	require.NoError(t, err)
	got, err := l.signIn(t.Context(), "max@acme.test", password)
	require.NoError(t, err)
	kept, err := l.signIn(t.Context(), "alice@acme.test", password)
	require.NoError(t, err)
	require.NoError(t, l.Disable(t.Context(), "Max@ACME.test"))
	require.NoError(t, l.Invite(t.Context(), "eve@acme.test"))
	require.NoError(t, l.Delete(t.Context(), "stray@nowhere.test"))

	require.NoError(t, l.Close())
	l.config.Password = "another one" // an invited user's is the pool's
	l.open(t)
	_, err = l.signIn(t.Context(), "max@acme.test", "another one")
	require.ErrorContains(t, err, "User is disabled.")
	_, err = l.renew(t.Context(), types.AuthFlowTypeRefreshTokenAuth, *got.RefreshToken)
	require.Error(t, err)
	again, err := l.AddUser("max@acme.test", "", true)
	require.NoError(t, err)
	require.Equal(t, []any{max.Sub, true}, []any{again.Sub, again.Disabled}, "adding is not inviting")
	_, err = l.signIn(t.Context(), "eve@acme.test", "another one")
	require.NoError(t, err)
	_, err = l.renew(t.Context(), types.AuthFlowTypeRefreshTokenAuth, *kept.RefreshToken)
	require.NoError(t, err, "nobody else was meant")
}

func TestWhoIsDisabledGetsNoTokenForACode(t *testing.T) {
	l := start(t, nil)
	c, verifier := l.oauth("openid"), oauth2.GenerateVerifier()
	code := l.code(t, c, verifier).Get("code")
	require.NoError(t, l.Disable(t.Context(), "alice@acme.test"))
	_, err := c.Exchange(t.Context(), code, oauth2.VerifierOption(verifier))
	require.Equal(t, "invalid_grant", oauthCode(err))
}

// Whoever is disabled or deleted while it signs in has no session afterwards, not even one for later.
func TestASignInThatMeetsItsEnd(t *testing.T) {
	for name, end := range map[string]func(*pool.Pool, context.Context, string) error{"User is disabled.": (*pool.Pool).Disable, "User does not exist.": (*pool.Pool).Delete} {
		t.Run(name, func(t *testing.T) {
			var l *local
			l = start(t, func(c *pool.Config) {
				c.PreToken = func(ctx context.Context, e events.CognitoEventUserPoolsPreTokenGenV2_0) (events.CognitoEventUserPoolsPreTokenGenV2_0, error) {
					return e, end(l.Pool, ctx, "alice@acme.test")
				}
			})
			_, err := l.signIn(t.Context(), "alice@acme.test", password)
			require.ErrorContains(t, err, name)
			require.NoError(t, l.Close())
			raw, err := os.ReadFile(filepath.Join(l.config.Dir, "sessions.ndjson"))
			require.NoError(t, err)
			begun, ended := strings.Count(string(raw), `{"begin":`), strings.Count(string(raw), `{"end":`)
			require.Equal(t, []int{1, 1}, []int{begun, ended})
		})
	}
}

func TestInvitingRefusesWhatIsNoAddress(t *testing.T) {
	l := start(t, nil)
	require.Error(t, l.Invite(t.Context(), "max"))
	require.NoError(t, l.Delete(t.Context(), l.alice.Sub), "a sub is no address")
	_, err := l.signIn(t.Context(), "alice@acme.test", password)
	require.NoError(t, err)
}
