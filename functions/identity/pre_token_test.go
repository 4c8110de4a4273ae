package identity_test

import (
	"encoding/json"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/functions/identity"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestPreToken(t *testing.T) {
	p := handlertest.New(t)
	w := p.DB.World(t, "acme")
	trigger := identity.PreToken(p.Env(t, "pre-token"))
	claims := func(email, verified string) (id, access map[string]any) {
		var e events.CognitoEventUserPoolsPreTokenGenV2_0
		e.Request.UserAttributes = map[string]string{"email": email, "email_verified": verified}
		raw, err := json.Marshal(e)
		require.NoError(t, err)
		raw, err = trigger.Invoke(t.Context(), raw)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(raw, &e))
		d := e.Response.ClaimsAndScopeOverrideDetails
		return d.IDTokenGeneration.ClaimsToAddOrOverride, d.AccessTokenGeneration.ClaimsToAddOrOverride
	}
	id, access := claims("Owner@ACME.test", "true")
	require.Equal(t, id, access)
	c := tenant.Claims(id).Caller()
	require.Equal(t, tenant.Caller{TenantID: w.TenantID, TenantSlug: "acme", UserID: w.UserID, Email: "Owner@ACME.test", EmailVerified: true, Role: tenant.Owner}, c)

	for name, given := range map[string][2]string{
		"unknown":    {"nobody@acme.test", "true"},
		"unverified": {"owner@acme.test", "false"},
		"empty":      {"", "true"},
	} {
		id, _ := claims(given[0], given[1])
		require.Empty(t, tenant.Claims(id).Caller().TenantID, name)
	}
	_, err := p.DB.Superuser(t).Exec(t.Context(), `update users set status = 'disabled'`)
	require.NoError(t, err)
	id, _ = claims("owner@acme.test", "true")
	require.Empty(t, tenant.Claims(id).Caller().TenantID, "disabled")
}
