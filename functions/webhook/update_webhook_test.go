package webhook_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/webhook"
)

func TestUpdateWebhookMerges(t *testing.T) {
	s := newSite(t)
	w := s.hook(fields{"description": "All of them", "prompt": "New: {{payload}}", "rate_limit": 7, "enabled": false,
		"config": json.RawMessage(`{"a":{"b":1,"c":[1,2]},"d":"x","big":12345678901234567890,"none":null}`)})
	state := fields{}
	s.ask("GET", "/api/webhooks/"+w.ID, nil).Into(t, &state)

	// Each patch is applied to what the one before left. What it does not name stays.
	for i, c := range []struct{ patch, now string }{
		{`{"name":"invoices"}`, `{"name":"invoices"}`},
		{`{"config":{"a":{"b":null,"e":{"f":null,"g":1}},"d":{"h":true}}}`, `{"config":{"a":{"c":[1,2],"e":{"g":1}},"d":{"h":true},"big":12345678901234567890,"none":null}}`},
		{`{"config":{"a":{"c":[null,{"x":null}]},"gone":null}}`, `{"config":{"a":{"c":[null,{"x":null}],"e":{"g":1}},"d":{"h":true},"big":12345678901234567890,"none":null}}`},
		{`{"enabled":true,"rate_limit":100000}`, `{"enabled":true,"rate_limit":100000}`},
		{`{"description":null}`, `{"description":null}`},
		{`{"prompt":null,"rate_limit":null,"target_type":null,"enabled":null,"config":null}`, `{"prompt":null,"rate_limit":10,"target_type":"agent","enabled":true,"config":{}}`},
		{`{"config":{"a":1}}`, `{"config":{"a":1}}`},
	} {
		typ := []string{"application/json", "application/merge-patch+json"}[i%2]
		before := state["updated_at"]
		answer := s.ask("PATCH", "/api/webhooks/"+w.ID, c.patch, "Content-Type", typ)
		got := read[fields](t, 200, answer)
		require.Equal(t, fmt.Sprintf("%q", fmt.Sprint(i+2)), answer.Header.Get("ETag"), c.patch)
		require.Greater(t, got["updated_at"], before)
		require.NoError(t, json.Unmarshal([]byte(c.now), &state))
		if strings.Contains(c.patch, "config") { // Unmarshal adds to the map that is there
			delete(state, "config")
			require.NoError(t, json.Unmarshal([]byte(c.now), &state))
		}
		state["updated_at"] = got["updated_at"]
		require.Equal(t, state, got, c.patch)
		if strings.Contains(c.now, "big") {
			require.Contains(t, string(answer.Body), `"big":12345678901234567890`, "an untouched number")
		}
		require.Equal(t, state, read[fields](t, 200, s.ask("GET", "/api/webhooks/"+w.ID, nil)))
	}

	// What changes nothing is no change.
	for _, patch := range []string{`{}`, `{"name":"invoices","enabled":true}`, `{"config":{"a":1,"b":null}}`, `{"description":null}`, `{"agent_id":"` + strings.ToUpper(s.AgentID) + `"}`} {
		answer := s.ask("PATCH", "/api/webhooks/"+w.ID, patch)
		require.Equal(t, state, read[fields](t, 200, answer), patch)
		require.Equal(t, `"8"`, answer.Header.Get("ETag"))
	}
}

func TestUpdateWebhookRefuses(t *testing.T) {
	s := newSite(t)
	globex := s.neighbour("globex")
	w := s.hook(fields{"config": fields{"a": long(16000)}})
	before := text(t, s.get(w.ID))
	for patch, detail := range map[string]string{
		`{"name":null}`:                           "name must not be empty",
		`{"name":""}`:                             "name must not be empty",
		`{"rate_limit":0}`:                        "rate_limit must be from 1 to 100000",
		`{"rate_limit":"10"}`:                     "rate_limit must not be a JSON string",
		`{"agent_id":null}`:                       "agent_id is required",
		`{"agent_id":"` + globex.AgentID + `"}`:   "agent_id names no agent of the tenant",
		`{"target_type":"routine"}`:               "routine_id is required for target_type routine",
		`{"routine_id":"` + never() + `"}`:        "routine_id is for target_type routine",
		`{"prompt":"{{x}}"}`:                      "prompt holds {{x}}",
		`{"config":[]}`:                           "config must not be a JSON array",
		`{"config":{"b":"` + long(400) + `"}}`:    "config must be a JSON object of at most 16384 bytes",
		`{"id":"` + w.ID + `"}`:                   `not known: "id"`,
		`{"token":null}`:                          `not known: "token"`,
		`{"tenant_id":"` + globex.TenantID + `"}`: `not known: "tenant_id"`,
		`{"invocation_count":0}`:                  `not known: "invocation_count"`,
		`{"name":"a","name":"b"}`:                 `the member "name" twice`,
		`{"config":{"x":{"a":1,"a":2}}}`:          `the member "a" twice`,
		`[]`:                                      "must be a JSON object",
		`null`:                                    "must be a JSON object",
		`{`:                                       "not valid JSON",
	} {
		p := refused(t, 400, "ValidationError", s.ask("PATCH", "/api/webhooks/"+w.ID, patch))
		require.Contains(t, p.Detail, detail, patch)
	}
	refused(t, 415, "ValidationError", s.ask("PATCH", "/api/webhooks/"+w.ID, `{}`, "Content-Type", "application/json-patch+json"))
	refused(t, 413, "ValidationError", s.ask("PATCH", "/api/webhooks/"+w.ID, `{"name":"`+long(1<<20)+`"}`))
	require.Equal(t, before, text(t, s.get(w.ID)))
}

func TestAWebhookOfAnArchivedAgentCanBeDisabled(t *testing.T) {
	s := newSite(t)
	w := s.hook()
	s.suspend("archived")
	require.False(t, *read[webhook.Webhook](t, 200, s.ask("PATCH", "/api/webhooks/"+w.ID, `{"enabled":false}`)).Enabled)
	refused(t, 403, "Forbidden", s.call(w.ID, w.Token, `{"message":"x"}`))
}

func TestIfMatch(t *testing.T) {
	s := newSite(t)
	w := s.hook()
	path := "/api/webhooks/" + w.ID
	for _, c := range []struct {
		given  string
		status int
		tag    string // then
	}{
		{`"1"`, 200, `"2"`},
		{`"1"`, 412, `"2"`},
		{`W/"2"`, 412, `"2"`},
		{`2`, 412, `"2"`},
		{`"1", "3"`, 412, `"2"`},
		{`"1" ,"2"`, 200, `"3"`},
		{`*`, 200, `"4"`},
		{"", 200, `"5"`},
	} {
		before := s.get(w.ID)
		answer := s.ask("PATCH", path, fields{"name": "n" + before.UpdatedAt.String()}, "If-Match", c.given)
		if c.status == 412 {
			p := refused(t, 412, "ValidationError", answer)
			require.Equal(t, "Precondition Failed", p.Title)
			require.Contains(t, p.Detail, c.tag)
			require.Equal(t, before, s.get(w.ID), c.given)
		} else {
			require.Equal(t, c.status, answer.Status, "%s: %s", c.given, answer.Body)
			require.Equal(t, c.tag, answer.Header.Get("ETag"), c.given)
		}
		require.Equal(t, c.tag, s.ask("GET", path, nil).Header.Get("ETag"))
	}
	// What is wrong with the version is told before what is wrong with the change, and of no version there is none to tell.
	refused(t, 412, "ValidationError", s.ask("PATCH", path, `{"rate_limit":0}`, "If-Match", `"1"`))
	refused(t, 404, "NotFound", s.ask("PATCH", "/api/webhooks/"+never(), `{}`, "If-Match", `*`))
	refused(t, 404, "NotFound", s.ask("DELETE", "/api/webhooks/"+never(), nil, "If-Match", `*`))

	// Calls move the counters, not the version.
	for range 3 {
		s.accepted(w, `{"message":"x"}`)
	}
	now := s.get(w.ID)
	require.EqualValues(t, 3, now.InvocationCount)
	require.Equal(t, `"5"`, s.ask("GET", path, nil).Header.Get("ETag"))
	require.Equal(t, 200, s.ask("PATCH", path, `{"name":"called"}`, "If-Match", `"5"`).Status)
	require.EqualValues(t, 3, s.get(w.ID).InvocationCount)
}

func TestOfTwoChangesToOneVersionOneIsLost(t *testing.T) {
	s := newSite(t)
	w := s.hook(fields{"config": fields{"by": fields{}}})
	for round := range 10 {
		tag := s.ask("GET", "/api/webhooks/"+w.ID, nil).Header.Get("ETag")
		var wait sync.WaitGroup
		answers := make([]int, 2)
		for i := range answers {
			wait.Go(func() {
				answers[i] = s.ask("PATCH", "/api/webhooks/"+w.ID, fields{"config": fields{"by": fields{"0": nil, "1": nil, text(t, i): round}}}, "If-Match", tag).Status
			})
		}
		wait.Wait()
		require.ElementsMatch(t, []int{200, 412}, answers)
		winner := text(t, 0)
		if answers[1] == 200 {
			winner = text(t, 1)
		}
		require.Equal(t, fields{winner: float64(round)}, s.get(w.ID).Config["by"])
	}
	// Without a version both are made, one after the other: neither's member is lost.
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			require.Equal(t, 200, s.ask("PATCH", "/api/webhooks/"+w.ID, fields{"config": fields{"all": fields{text(t, i): i}}}).Status)
		})
	}
	wait.Wait()
	require.Len(t, s.get(w.ID).Config["all"], 8)
}
