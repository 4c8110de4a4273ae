package webhook_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
	"github.com/agentplatform/agentplatform/pkg/tenant"
)

// routes are the administration's, of one webhook and one run.
func routes(webhookID, runID string) []handlertest.RESTCall {
	path := "/api/webhooks/" + webhookID
	return []handlertest.RESTCall{
		{Method: "GET", Path: path},
		{Method: "PATCH", Path: path, Body: fields{"name": "taken over"}},
		{Method: "DELETE", Path: path},
		{Method: "GET", Path: path + "/runs"},
		{Method: "GET", Path: path + "/runs/" + runID},
		{Method: "POST", Path: path + "/test"},
	}
}

func TestRoles(t *testing.T) {
	s := newSite(t)
	w := s.hook()
	run := s.accepted(w, `{"message":"x"}`)
	before := s.rows()
	all := append(routes(w.ID, run.RunID), handlertest.RESTCall{Method: "GET", Path: "/api/webhooks"}, handlertest.RESTCall{Method: "POST", Path: "/api/webhooks", Body: fields{"name": "x", "agent_id": s.AgentID}})
	nobody := tenant.Claims{"email": "somebody@acme.test", "email_verified": true, "custom:role": "owner"}
	for _, c := range all {
		c.Claims = nil
		require.Equal(t, "Bearer", s.refusedAs(401, "Unauthorized", c).Header.Get("WWW-Authenticate"))
		c.Claims = nobody
		s.refusedAs(403, "Forbidden", c)
		for _, role := range []tenant.Role{tenant.Member, "", "Admin"} {
			if c.Claims = handlertest.Claims(s.World, role); c.Method == http.MethodGet {
				require.Equal(t, 200, s.rest.Do(t, c).Status, "%s %s", c.Method, c.Path)
			} else {
				s.refusedAs(403, "Forbidden", c)
			}
		}
	}
	require.Equal(t, before, s.rows())
	require.Equal(t, "orders", s.get(w.ID).Name)
	owner := handlertest.Claims(s.World, tenant.Owner)
	for i, status := range []int{200, 200, 204, 404} { // the third deletes it
		c := all[i]
		c.Claims = owner
		require.Equal(t, status, s.rest.Do(t, c).Status, "%s %s", c.Method, c.Path)
	}
}

func (s *site) refusedAs(status int, errorType string, c handlertest.RESTCall) handlertest.Answer {
	s.t.Helper()
	answer := s.rest.Do(s.t, c)
	refused(s.t, status, errorType, answer)
	return answer
}

func TestAnotherTenantsIsAsIfItNeverWas(t *testing.T) {
	s := newSite(t)
	globex := s.neighbour("globex")
	w, own := s.hook(), globex.hook()
	run := s.accepted(w, `{"message":"x"}`)
	before, rows := text(t, s.get(w.ID)), s.rows()
	same := func(foreign, missing []handlertest.RESTCall) {
		t.Helper()
		for i := range foreign {
			foreign[i].Claims, missing[i].Claims = globex.admin, globex.admin
			answers := []handlertest.Answer{globex.refusedAs(404, "NotFound", foreign[i]), globex.refusedAs(404, "NotFound", missing[i])}
			var bodies [2]fields
			for j, a := range answers {
				a.Into(t, &bodies[j])
				delete(bodies[j], "instance")
				a.Header.Del("X-Request-Id")
			}
			require.Equal(t, bodies[1], bodies[0], foreign[i].Path)
			require.Equal(t, answers[1].Header, answers[0].Header)
		}
	}
	same(routes(w.ID, run.RunID), routes(never(), never()))
	same(routes(w.ID, run.RunID), routes("nonsense", "nonsense"))
	// Their run under a webhook of one's own.
	same(routes(own.ID, run.RunID)[4:5], routes(own.ID, never())[4:5])

	// A run is one webhook's, within a tenant too.
	second := s.hook()
	p := refused(t, 404, "NotFound", s.ask("GET", "/api/webhooks/"+second.ID+"/runs/"+run.RunID, nil))
	require.Equal(t, "run not found", p.Detail)
	require.Empty(t, s.runs(second.ID))
	rows["webhooks"]++
	require.Equal(t, rows, s.rows())
	require.Equal(t, before, text(t, s.get(w.ID)))
}
