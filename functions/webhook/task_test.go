package webhook_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/secret"
	"github.com/agentplatform/agentplatform/pkg/webhook"
)

// tasks makes a webhook of Linear's.
func (s *site) tasks(changes ...fields) webhook.Webhook {
	s.t.Helper()
	body := fields{"name": "tasks", "target_type": "task", "config": fields{"provider": "linear", "mine": 1}}
	for _, c := range changes {
		for name, value := range c {
			body[name] = value
		}
	}
	return read[webhook.Webhook](s.t, 201, s.ask("POST", "/api/webhooks", body))
}

// kept is what the store has of a webhook's secret; empty: nothing.
func (s *site) kept(id string) string {
	s.t.Helper()
	name, err := secret.Of(s.TenantID, "webhooks", id)
	require.NoError(s.t, err)
	value, err := s.p.IntegrationSecrets().Get(s.t.Context(), name)
	if err != nil {
		require.ErrorIs(s.t, err, secret.ErrMissing)
	}
	return value
}

func TestTaskWebhook(t *testing.T) {
	s := newSite(t)
	w := s.tasks()
	require.Equal(t, []any{webhook.Task, (*string)(nil), 600, false}, []any{w.TargetType, w.AgentID, *w.RateLimit, w.HasSecret})
	require.Equal(t, []string{"linear"}, column[string](s, `select provider from webhooks where id = $1`, w.ID))
	w = s.tasks(fields{"agent_id": strings.ToUpper(s.AgentID), "rate_limit": 5})
	require.Equal(t, []any{s.AgentID, 5}, []any{*w.AgentID, *w.RateLimit})

	changed := read[webhook.Webhook](t, 200, s.ask("PATCH", "/api/webhooks/"+w.ID, `{"agent_id":null,"rate_limit":null,"config":{"provider":"jira"}}`))
	require.Equal(t, []any{(*string)(nil), 600}, []any{changed.AgentID, *changed.RateLimit})
	require.Equal(t, []string{"jira"}, column[string](s, `select provider from webhooks where id = $1`, w.ID))
	changed = read[webhook.Webhook](t, 200, s.ask("PATCH", "/api/webhooks/"+w.ID, `{"target_type":"agent","agent_id":"`+s.AgentID+`"}`))
	require.Equal(t, webhook.Agent, changed.TargetType)
	require.Equal(t, []string{"none"}, column[string](s, `select coalesce(provider::text, 'none') from webhooks where id = $1`, w.ID))

	for body, says := range map[string]string{
		`{"name":"x","target_type":"task","config":{"provider":"trello"}}`:                                        "config.provider is required for target_type task: linear, jira, asana",
		`{"name":"x","target_type":"task","config":{"provider":7}}`:                                               "config.provider is required",
		`{"name":"x","target_type":"task","config":{"provider":"linear"},"prompt":"p"}`:                           "prompt is for target_type agent",
		`{"name":"x","target_type":"task","config":{"provider":"linear"},"routine_id":"` + never() + `"}`:         "routine_id is for target_type routine",
		`{"name":"x","target_type":"task","config":{"provider":"linear"},"agent_id":"` + never() + `"}`:           "agent_id names no agent of the tenant",
		`{"name":"x","target_type":"task","config":{"provider":"linear"},"agent_id":"x"}`:                         "agent_id names no agent of the tenant",
		`{"name":"x","target_type":"task","config":{"provider":"linear"},"signing_secret":""}`:                    "signing_secret must be 1 to 500 visible characters",
		`{"name":"x","target_type":"task","config":{"provider":"linear"},"signing_secret":"` + long(501) + `"}`:   "signing_secret must be 1 to 500 visible characters",
		`{"name":"x","target_type":"task","config":{"provider":"linear"},"signing_secret":"a\nb"}`:                "signing_secret must be 1 to 500 visible characters",
		`{"name":"x","agent_id":"` + s.AgentID + `","config":{"provider":"linear"},"signing_secret":"swordfish"}`: "signing_secret is for target_type task",
	} {
		require.Contains(t, refused(t, 400, "ValidationError", s.ask("POST", "/api/webhooks", body)).Detail, says, body)
	}
	s.change(`update spaces set default_agent_id = null`)
	detail := refused(t, 400, "ValidationError", s.ask("POST", "/api/webhooks", `{"name":"x","target_type":"task","config":{"provider":"linear"}}`)).Detail
	require.Equal(t, "agent_id is required: the space has no default agent", detail)
}

// The secret is in the store of secrets, and nowhere else; each change is another version, and none comes twice.
func TestSigningSecret(t *testing.T) {
	s := newSite(t)
	const one, two, three = "swordfish-one", "swordfish-two", "swordfish-three"
	w := s.tasks(fields{"signing_secret": one})
	require.True(t, w.HasSecret)
	require.JSONEq(t, `{"version":1,"value":"`+one+`"}`, s.kept(w.ID))
	patch := func(body string) webhook.Webhook {
		t.Helper()
		return read[webhook.Webhook](t, 200, s.ask("PATCH", "/api/webhooks/"+w.ID, body))
	}
	before := s.ask("GET", "/api/webhooks/"+w.ID, nil).Header.Get("ETag")
	require.True(t, patch(`{"description":"x"}`).HasSecret)
	require.JSONEq(t, `{"version":1,"value":"`+one+`"}`, s.kept(w.ID))
	require.True(t, patch(`{"signing_secret":"`+two+`","name":"other"}`).HasSecret)
	require.JSONEq(t, `{"version":2,"value":"`+two+`"}`, s.kept(w.ID))
	refused(t, 412, "ValidationError", s.ask("PATCH", "/api/webhooks/"+w.ID, `{"signing_secret":"x"}`, "If-Match", before))
	require.False(t, patch(`{"signing_secret":null}`).HasSecret)
	require.Empty(t, s.kept(w.ID))
	require.False(t, patch(`{"signing_secret":null}`).HasSecret)
	require.True(t, patch(`{"signing_secret":"`+three+`"}`).HasSecret)
	require.JSONEq(t, `{"version":3,"value":"`+three+`"}`, s.kept(w.ID))
	require.False(t, patch(`{"target_type":"agent","agent_id":"`+s.AgentID+`"}`).HasSecret, "it goes with the tracker")
	require.Empty(t, s.kept(w.ID))
	require.True(t, patch(`{"target_type":"task","agent_id":null,"signing_secret":"`+one+`"}`).HasSecret)
	refused(t, 400, "ValidationError", s.ask("PATCH", "/api/webhooks/"+w.ID, `{"target_type":"agent","agent_id":"`+s.AgentID+`","signing_secret":"x"}`))
	require.JSONEq(t, `{"version":4,"value":"`+one+`"}`, s.kept(w.ID))

	list := s.ask("GET", "/api/webhooks", nil)
	require.NotContains(t, string(list.Body), "swordfish")
	for _, table := range s.tables() {
		require.Empty(t, column[string](s, `select t::text from `+table+` t where t::text like '%swordfish%'`), table)
	}
	require.Equal(t, 204, s.ask("DELETE", "/api/webhooks/"+w.ID, nil).Status)
	require.Empty(t, s.kept(w.ID))
}

// A webhook of a tracker starts nothing: to whoever calls it so it is none, and it is not tested.
func TestATaskWebhookIsNotCalled(t *testing.T) {
	s := newSite(t)
	w := s.tasks()
	require.Equal(t, "no webhook has this id and token", refused(t, 401, "Unauthorized", s.call(w.ID, w.Token, hello)).Detail)
	require.Equal(t, "no webhook has this id and token", refused(t, 401, "Unauthorized", s.poll(w.ID, never(), w.Token)).Detail)
	require.Contains(t, refused(t, 400, "ValidationError", s.ask("POST", "/api/webhooks/"+w.ID+"/test", nil)).Detail, "its tracker tests it")
	require.Empty(t, s.runs(w.ID))
	require.Zero(t, s.get(w.ID).InvocationCount)
}
