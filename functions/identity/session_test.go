package identity_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/functions/identity"
	"github.com/agentplatform/agentplatform/pkg/audit"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

type args = map[string]any

// tell calls a trigger or a task with an event, and gives its answer.
func tell(t *testing.T, p *handlertest.Platform, name string, event any) (json.RawMessage, error) {
	t.Helper()
	raw, err := json.Marshal(event)
	require.NoError(t, err)
	constructor := identity.PostAuthentication
	if name == "sign-in-failed" {
		constructor = identity.SignInFailed
	}
	return constructor(p.Env(t, name)).Invoke(t.Context(), raw)
}

// logged is what goes to the log until the test ends.
func logged(t *testing.T) *bytes.Buffer {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewJSONHandler(&log, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return &log
}

func signedIn(email, verified string) events.CognitoEventUserPoolsPostAuthentication {
	var e events.CognitoEventUserPoolsPostAuthentication
	e.Version, e.TriggerSource, e.UserName = "1", "PostAuthentication_Authentication", "a-sub"
	e.Request.UserAttributes = map[string]string{"email": email, "email_verified": verified, "cognito:user_status": "CONFIRMED"}
	return e
}

func TestSignInsAreRecorded(t *testing.T) {
	p := handlertest.New(t)
	w := p.DB.World(t, "acme")
	// As Cognito tells of it: without an origin, and what a client adds is not believed.
	e := signedIn("Owner@ACME.test", "true")
	e.Request.ClientMetadata = map[string]string{"ip": "203.0.113.9", "origin": "203.0.113.9"}
	raw, err := tell(t, p, "post-authentication", e)
	require.NoError(t, err)
	want, err := json.Marshal(e)
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(raw), "Cognito gets its event back")
	// As the local pool does.
	_, err = tell(t, p, "post-authentication", struct {
		events.CognitoEventUserPoolsPostAuthentication
		Origin args `json:"origin"`
	}{e, args{"ip": "127.0.0.1", "userAgent": "curl/8"}})
	require.NoError(t, err)
	e.Request.UserAttributes["cognito:user_status"] = "EXTERNAL_PROVIDER"
	_, err = tell(t, p, "post-authentication", e)
	require.NoError(t, err)

	recorded := p.Recorded(t)
	require.Len(t, recorded, 3)
	for i, payload := range []args{
		{"userId": w.UserID, "method": "password"},
		{"userId": w.UserID, "method": "password", "ip": "127.0.0.1", "userAgent": "curl/8"},
		{"userId": w.UserID, "method": "federated"},
	} {
		r := recorded[i]
		require.Equal(t, audit.SignInSucceeded, r.Type)
		require.Equal(t, payload, r.Payload)
		require.Empty(t, r.RedactedFields)
		require.Equal(t, []string{w.TenantID, w.UserID, "user", "system", "user", w.UserID},
			[]string{r.TenantID, r.Actor, string(r.ActorType), string(r.Source), r.ResourceType, r.ResourceID})
	}
}

func TestASignInThatIsNotRecordedFails(t *testing.T) {
	p := handlertest.New(t)
	p.DB.World(t, "acme")
	p.BreakOutbox(t)
	_, err := tell(t, p, "post-authentication", signedIn("owner@acme.test", "true"))
	require.Error(t, err)
	_, err = tell(t, p, "sign-in-failed", args{"email": "owner@acme.test"})
	require.Error(t, err, "to be tried again")
}

func TestASignInWithoutATenantGoesToTheLogOnly(t *testing.T) {
	p := handlertest.New(t)
	p.DB.World(t, "acme")
	log := logged(t)
	for _, e := range []events.CognitoEventUserPoolsPostAuthentication{
		signedIn("nobody@nowhere.test", "true"), signedIn("owner@acme.test", "false"), signedIn("", "true"),
	} {
		_, err := tell(t, p, "post-authentication", e)
		require.NoError(t, err)
	}
	require.Empty(t, p.Recorded(t))
	require.Contains(t, log.String(), "signed in without a tenant")
	require.Contains(t, log.String(), "signed in with an unverified address")
	require.NotContains(t, log.String(), "nobody@")
}

func TestFailedSignInsAreRecorded(t *testing.T) {
	p := handlertest.New(t)
	w := p.DB.World(t, "acme")
	failed := args{"email": "Owner@ACME.test", "method": "password", "reason": "wrong_password", "ip": "127.0.0.1", "userAgent": "curl/8",
		"tenantId": "forged", "TenantID": "forged", "userId": "forged"}
	_, err := tell(t, p, "sign-in-failed", failed)
	require.NoError(t, err)
	_, err = p.DB.Superuser(t).Exec(t.Context(), `update users set status = 'disabled'`)
	require.NoError(t, err)
	_, err = tell(t, p, "sign-in-failed", args{"email": "owner@acme.test", "method": "password", "reason": "user_disabled"})
	require.NoError(t, err)

	recorded := p.Recorded(t)
	require.Len(t, recorded, 2)
	for i, payload := range []args{
		{"email": "owner@acme.test", "method": "password", "reason": "wrong_password", "ip": "127.0.0.1"},
		{"email": "owner@acme.test", "method": "password", "reason": "user_disabled"},
	} {
		r := recorded[i]
		require.Equal(t, audit.SignInFailed, r.Type)
		require.Equal(t, payload, r.Payload)
		require.Empty(t, r.RedactedFields)
		require.Equal(t, []string{w.TenantID, "identity-pool", "system", "system", "user", w.UserID},
			[]string{r.TenantID, r.Actor, string(r.ActorType), string(r.Source), r.ResourceType, r.ResourceID})
	}
}

func TestAFailedSignInOfNobodyGoesToTheLogOnly(t *testing.T) {
	p := handlertest.New(t)
	p.DB.World(t, "acme")
	log := logged(t)
	for _, email := range []string{"nobody@nowhere.test", "", "my secret password", "a\x00b@acme.test", "%@acme.test"} {
		_, err := tell(t, p, "sign-in-failed", args{"email": email, "method": "password", "reason": "unknown_user"})
		require.NoError(t, err, email)
	}
	require.Empty(t, p.Recorded(t))
	require.Contains(t, log.String(), `"domain":"nowhere.test","reason":"unknown_user"`)
	require.NotContains(t, log.String(), "nobody")
	require.NotContains(t, log.String(), "secret")
}

func TestSignOut(t *testing.T) {
	p := handlertest.New(t, "ops@platform.test")
	w := p.DB.World(t, "acme")
	member := handlertest.Claims(w, tenant.Member)
	member["origin_jti"] = "session-1"
	out := func(by tenant.Claims) (bool, *fault.Error) {
		return handlertest.Call[bool](t, p, "sign-out", identity.SignOut, by, args{})
	}
	done, err := out(member)
	require.Nil(t, err)
	require.True(t, done)
	require.Equal(t, []string{"sign out somebody@acme.test"}, p.Directory().Told())
	recorded := p.Recorded(t)
	require.Len(t, recorded, 1)
	require.Equal(t, audit.SignedOut, recorded[0].Type)
	require.Equal(t, args{"userId": w.UserID, "sessionId": "session-1"}, recorded[0].Payload)
	require.Equal(t, []string{w.TenantID, w.UserID, "user", w.UserID}, []string{recorded[0].TenantID, recorded[0].Actor, recorded[0].ResourceType, recorded[0].ResourceID})

	_, err = out(tenant.Claims{"email": "nobody@nowhere.test"})
	require.Equal(t, fault.Forbidden, err.Type)
	_, err = out(tenant.Claims{"email": "ops@platform.test"})
	require.Equal(t, fault.Forbidden, err.Type, "not verified")
	done, err = out(tenant.Claims{"email": "ops@platform.test", "email_verified": true})
	require.Nil(t, err)
	require.True(t, done)
	require.Equal(t, "sign out ops@platform.test", p.Directory().Told()[1])

	p.Directory().Fail = errors.New("the pool is away")
	_, err = out(member)
	require.Equal(t, fault.InternalError, err.Type)
	require.Len(t, p.Recorded(t), 1)
	p.Directory().Fail = nil
	p.BreakOutbox(t)
	_, err = out(member)
	require.Equal(t, fault.InternalError, err.Type)
	require.Len(t, p.Directory().Told(), 2)
}
