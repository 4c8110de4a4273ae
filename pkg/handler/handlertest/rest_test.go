package handlertest_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/functions"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/postgres/pgtest"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

type object = map[string]any

// Every operation of the contract is done once as it is meant to be, and refused once; Do holds each exchange to the contract. What the operations
// do beyond that is for their own tests.
func TestREST(t *testing.T) {
	p := handlertest.New(t)
	w := p.DB.World(t, "acme")
	admin, rest := handlertest.Claims(w, tenant.Admin), p.REST(t, functions.Table)
	do := func(status int, method, path string, c handlertest.RESTCall) (body object) {
		t.Helper()
		c.Method, c.Path = method, path
		answer := rest.Do(t, c)
		require.Equal(t, status, answer.Status, "%s %s: %s", method, path, answer.Body)
		if len(answer.Body) > 0 {
			answer.Into(t, &body)
		}
		return body
	}
	user, patch := handlertest.RESTCall{Claims: admin}, map[string]string{"Content-Type": "application/merge-patch+json", "If-Match": `"1"`}
	asking := func(body any) handlertest.RESTCall { return handlertest.RESTCall{Claims: admin, Body: body} }

	created := do(201, "POST", "/api/webhooks", asking(object{"name": "Deployments", "agent_id": strings.ToUpper(w.AgentID)}))
	one, token := "/"+created["id"].(string), created["token"].(string)
	caller := handlertest.RESTCall{Bearer: token, Body: `{"message":"hello"}`, Header: map[string]string{"Idempotency-Key": "k"}}
	do(200, "GET", "/api/webhooks?limit=1", user)
	do(200, "GET", "/api/webhooks"+one, user)
	do(200, "PATCH", "/api/webhooks"+one, handlertest.RESTCall{Claims: admin, Header: patch, Body: object{"description": "d", "rate_limit": nil}})
	do(202, "POST", "/api/webhooks"+one+"/test", user)
	run := "/" + do(202, "POST", "/webhooks"+one, caller)["run_id"].(string)
	do(200, "POST", "/webhooks"+one, caller)
	do(200, "GET", "/webhooks"+one+"/runs"+run, handlertest.RESTCall{Bearer: token})
	runs := do(200, "GET", "/api/webhooks"+one+"/runs?limit=1", user)
	require.Len(t, runs["items"], 1)
	do(200, "GET", "/api/webhooks"+one+"/runs?limit=1&next_token="+runs["next_token"].(string), user)
	require.Equal(t, object{"message": "hello"}, do(200, "GET", "/api/webhooks"+one+"/runs"+run, user)["context_snapshot"])
	event := object{"event_id": ident.New(), "tenant_id": w.TenantID, "occurred_at": ident.Now(), "actor": "runtime", "actor_type": "system", "event_type": "agent.created", "payload": object{}}
	do(201, "POST", "/api/compliance/events", handlertest.RESTCall{Bearer: handlertest.APISecret, Body: event})
	do(200, "POST", "/api/compliance/events", handlertest.RESTCall{Bearer: handlertest.APISecret, Body: event})

	do(400, "GET", "/api/webhooks?limit=0", user)
	do(400, "POST", "/api/webhooks", asking(object{"name": "n", "agent": 1}))
	do(401, "GET", "/api/webhooks", handlertest.RESTCall{})
	do(403, "POST", "/api/webhooks", handlertest.RESTCall{Claims: handlertest.Claims(w, tenant.Member), Body: object{}})
	do(404, "GET", "/api/webhooks/none%2F%20here", user)
	do(412, "PATCH", "/api/webhooks"+one, handlertest.RESTCall{Claims: admin, Header: patch, Body: object{"name": "x"}})
	do(413, "POST", "/api/webhooks"+one+"/test", asking(`{"message":"`+strings.Repeat("x", 1<<20)+`"}`))
	do(415, "POST", "/api/webhooks"+one+"/test", handlertest.RESTCall{Claims: admin, Body: "\xff", Header: map[string]string{"Content-Type": "application/octet-stream"}})
	do(401, "POST", "/webhooks"+one, handlertest.RESTCall{Bearer: token + "x"})
	do(404, "GET", "/webhooks"+one+"/runs"+one, handlertest.RESTCall{Bearer: token})
	do(409, "POST", "/api/compliance/events", handlertest.RESTCall{Bearer: handlertest.APISecret, Body: object{"event_id": event["event_id"], "tenant_id": w.TenantID,
		"occurred_at": event["occurred_at"], "actor": "other", "actor_type": "system", "event_type": "agent.created", "payload": object{}}})
	do(200, "PATCH", "/api/webhooks"+one, asking(object{"rate_limit": 2}))
	do(429, "POST", "/webhooks"+one, caller)
	do(204, "DELETE", "/api/webhooks"+one, user)
	do(404, "DELETE", "/api/webhooks"+one, user)
}
