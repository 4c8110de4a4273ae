package e2e

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// Somebody is invited, works, is disabled, invited again, and leaves; each step shows at the sign-in, and in the audit log.
func TestInvitedUser(t *testing.T) {
	t.Parallel()
	p := sharedPlatform(t)
	alice, ops := p.as(t, "alice"), p.as(t, "ops")
	const carol = "carol@acme.test"
	signIn := func() (tokens, error) {
		return p.signInErr("USER_PASSWORD_AUTH", map[string]string{"USERNAME": carol, "PASSWORD": p.Password})
	}
	_, err := signIn()
	require.ErrorContains(t, err, "NotAuthorizedException")

	id := alice.query(t, `mutation { inviteUser(input: {email: "Carol@acme.test"}) { id email role status } }`, nil).get("inviteUser.id")
	member := p.as(t, carol)
	member.open(t)
	refused, err := member.ask(`{ listUsers { items { id } } }`, nil)
	require.NoError(t, err)
	require.Contains(t, refused.problem(), "403 Forbidden")
	renewable, err := signIn()
	require.NoError(t, err)
	_, err = p.signInErr("USER_PASSWORD_AUTH", map[string]string{"USERNAME": carol, "PASSWORD": "wrong"})
	require.ErrorContains(t, err, "NotAuthorizedException")

	alice.query(t, `mutation ($id: ID!) { disableUser(id: $id, reason: "on leave") { status } }`, vars{"id": id})
	_, err = signIn()
	require.ErrorContains(t, err, "NotAuthorizedException")
	_, err = p.signInErr("REFRESH_TOKEN_AUTH", map[string]string{"REFRESH_TOKEN": renewable.RefreshToken})
	require.ErrorContains(t, err, "NotAuthorizedException")

	alice.query(t, `mutation { inviteUser(input: {email: "carol@acme.test", role: admin}) { status } }`, nil)
	back := p.as(t, carol)
	require.Contains(t, back.query(t, `{ listUsers(limit: 100) { items { email role } } }`, nil).get("listUsers"), `{"email":"carol@acme.test","role":"admin"}`)
	back.query(t, `mutation { signOut }`, nil)
	_, err = p.signInErr("REFRESH_TOKEN_AUTH", map[string]string{"REFRESH_TOKEN": back.tokens.RefreshToken})
	require.ErrorContains(t, err, "NotAuthorizedException")

	alice.query(t, `mutation ($id: ID!) { deleteUser(id: $id) { id } }`, vars{"id": id})
	_, err = signIn()
	require.ErrorContains(t, err, "NotAuthorizedException")

	for _, want := range []struct {
		eventType   string
		least, most int
	}{{"user.invited", 2, 2}, {"user.created", 1, 1}, {"user.disabled", 1, 1}, {"user.deleted", 1, 1},
		{"auth.signin.failure", 2, 3}, // whose failures they are is looked up beside the sign-in: the first may be looked up after the invitation
	} {
		require.NoError(t, until(func() (bool, error) {
			var page struct {
				ComplianceEvents struct{ Items []struct{ ResourceID string } }
			}
			a := ops.query(t, `query ($type: String) { complianceEvents(filter: {eventType: $type}, limit: 100) { items { resourceId } } }`, vars{"type": want.eventType})
			if err := json.Unmarshal(a.Data, &page); err != nil {
				return false, err
			}
			found := 0
			for _, e := range page.ComplianceEvents.Items {
				if e.ResourceID == id {
					found++
				}
			}
			return found >= want.least && found <= want.most, nil
		}), want.eventType)
	}
}
