package webhook_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/handler"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
	"github.com/agentplatform/agentplatform/pkg/webhook"
)

func TestCreateWebhook(t *testing.T) {
	s := newSite(t)
	answer := s.ask("POST", "/api/webhooks", fields{"name": "orders", "agent_id": s.AgentID})
	w := read[webhook.Webhook](t, 201, answer)
	require.Equal(t, "/api/webhooks/"+w.ID, answer.Header.Get("Location"))
	require.Equal(t, `"1"`, answer.Header.Get("ETag"))
	require.Equal(t, "no-store", answer.Header.Get("Cache-Control"))
	require.Regexp(t, `^[A-Za-z0-9]{32}$`, w.Token)
	var got fields
	answer.Into(t, &got)
	require.Equal(t, fields{"id": w.ID, "tenant_id": s.TenantID, "token": w.Token, "name": "orders", "description": nil, "target_type": "agent", "agent_id": s.AgentID,
		"routine_id": nil, "prompt": nil, "config": fields{}, "enabled": true, "rate_limit": 10.0, "last_invoked_at": nil, "invocation_count": 0.0, "has_signing_secret": false,
		"created_at": got["created_at"], "updated_at": got["created_at"]}, got)
	require.Regexp(t, `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$`, got["created_at"])

	full := fields{"name": "Ünits", "description": "", "target_type": "agent", "agent_id": strings.ToUpper(s.AgentID), "routine_id": nil, "prompt": "New: {{ payload.order.0.id }}, all: {{payload}}",
		"config": json.RawMessage(`{"a":{"b":[1,null,"<é>"]},"n":12345678901234567890,"s":"\u0000"}`), "enabled": false, "rate_limit": 100000}
	answer = s.ask("POST", "/api/webhooks", full)
	w2 := read[struct{ ID, Token string }](t, 201, answer)
	require.NotEqual(t, w.Token, w2.Token)
	full["agent_id"] = s.AgentID
	for _, answer := range []handlertest.Answer{answer, s.ask("GET", "/api/webhooks/"+w2.ID, nil)} {
		shown := map[string]json.RawMessage{}
		answer.Into(t, &shown)
		for name, value := range full {
			if name == "config" { // numbers as they were written
				require.Equal(t, `{"a":{"b":[1,null,"<é>"]},"n":12345678901234567890,"s":"\u0000"}`, string(shown[name]))
				continue
			}
			require.JSONEq(t, text(t, value), string(shown[name]), name)
		}
	}

	// Whatever shows it from here on shows its end only.
	masked := strings.Repeat("*", 28) + w.Token[28:]
	got2 := s.ask("GET", "/api/webhooks/"+w.ID, nil)
	require.Equal(t, masked, read[webhook.Webhook](t, 200, got2).Token)
	require.Equal(t, `"1"`, got2.Header.Get("ETag"))
	list := read[handler.List[struct{ Token string }]](t, 200, s.ask("GET", "/api/webhooks", nil))
	require.Len(t, list.Items, 2)
	require.Equal(t, masked, list.Items[0].Token)
	patched := s.ask("PATCH", "/api/webhooks/"+w.ID, fields{"description": "x"})
	require.Equal(t, masked, read[webhook.Webhook](t, 200, patched).Token)

	// Nor does any table have it.
	s.accepted(w, fields{"message": "Hello"})
	for _, name := range s.tables() {
		for _, row := range column[string](s, `select r::text from `+name+` r`) {
			for _, token := range []string{w.Token, w2.Token} {
				require.NotContains(t, row, token, name)
				require.NotContains(t, row, hex.EncodeToString([]byte(token)), name)
				require.NotContains(t, row, token[:28], name)
			}
		}
	}
}

func TestCreateWebhookRefuses(t *testing.T) {
	s := newSite(t)
	globex := s.neighbour("globex")
	s.change(`insert into agents (tenant_id, id, name, status, system_prompt, template_id) select tenant_id, 'aaaaaaaa-0000-7000-8000-000000000001', 'Old', 'archived', 'x', template_id from agents where id = $1`, s.AgentID)
	before := s.rows()
	deep := strings.Repeat(`{"a":`, 100) + `{}` + strings.Repeat(`}`, 100)
	with := func(member, value string) string {
		if member == "agent_id" {
			return fmt.Sprintf(`{"name":"x","agent_id":%s}`, value)
		}
		if member == "name" {
			return fmt.Sprintf(`{"name":%s,"agent_id":%q}`, value, s.AgentID)
		}
		return fmt.Sprintf(`{"name":"x","agent_id":%q,%q:%s}`, s.AgentID, member, value)
	}
	quoted := func(v any) string { return text(t, v) }
	for _, c := range []struct{ member, value, detail string }{
		{"name", `""`, "name must not be empty"},
		{"name", `" \t"`, "name must not be empty"},
		{"name", `null`, "name must not be empty"},
		{"name", quoted(long(201)), "name is longer than 200 bytes"},
		{"name", quoted(strings.Repeat("é", 101)), "name is longer than 200 bytes"},
		{"name", `"a\u0000"`, "name must be UTF-8 text without NUL"},
		{"name", `7`, "name must not be a JSON number"},
		{"description", quoted(long(4001)), "description is longer than 4000 bytes"},
		{"description", `["x"]`, "description must not be a JSON array"},
		{"prompt", `""`, "prompt must not be empty"},
		{"prompt", quoted(long(64<<10 + 1)), "prompt is longer than 65536 bytes"},
		{"prompt", `"{{body}}"`, "prompt holds {{body}}; a placeholder is {{payload}} or {{payload.path.to.a.member}}"},
		{"prompt", `"a {{payload.x}} b {{payload..x}}"`, "prompt holds {{payload..x}}"},
		{"prompt", `"{{}}"`, "prompt holds {{}}"},
		{"prompt", `"{{payload.a b}}"`, "prompt holds {{payload.a b}}"},
		{"config", `[]`, "config must not be a JSON array"},
		{"config", `"{}"`, "config must not be a JSON string"},
		{"config", quoted(fields{"a": long(16 << 10)}), "config must be a JSON object of at most 16384 bytes, nested at most 100 levels deep"},
		{"config", deep, "config must be a JSON object of at most 16384 bytes, nested at most 100 levels deep"},
		{"config", `{"a":1e400}`, "not valid JSON"},
		{"config", `{"a":1,"a":2}`, `the member "a" twice`},
		{"rate_limit", `0`, "rate_limit must be from 1 to 100000 calls a minute"},
		{"rate_limit", `-1`, "rate_limit must be from 1 to 100000"},
		{"rate_limit", `100001`, "rate_limit must be from 1 to 100000"},
		{"rate_limit", `1.5`, "rate_limit must not be a JSON number 1.5"},
		{"rate_limit", `"10"`, "rate_limit must not be a JSON string"},
		{"rate_limit", `99999999999999999999`, "rate_limit must not be a JSON number 99999999999999999999"},
		{"enabled", `"true"`, "enabled must not be a JSON string"},
		{"enabled", `1`, "enabled must not be a JSON number"},
		{"target_type", `"routine"`, "routine_id is required for target_type routine"},
		{"target_type", `"task"`, "config.provider is required for target_type task: linear, jira, asana"},
		{"signing_secret", `"s"`, "signing_secret is for target_type task"},
		{"signing_secret", `7`, "must not be a JSON number"},
		{"target_type", `"other"`, "target_type must be agent, routine or task"},
		{"target_type", `"Agent"`, "target_type must be agent, routine or task"},
		{"target_type", `""`, "target_type must be agent, routine or task"},
		{"target_type", `1`, "target_type must not be a JSON number"},
		{"routine_id", quoted(never()), "routine_id is for target_type routine"},
		{"agent_id", `null`, "agent_id is required for target_type agent"},
		{"agent_id", `"nonsense"`, "agent_id names no agent of the tenant"},
		{"agent_id", `""`, "agent_id names no agent of the tenant"},
		{"agent_id", quoted(never()), "agent_id names no agent of the tenant"},
		{"agent_id", quoted(globex.AgentID), "agent_id names no agent of the tenant"},
		{"agent_id", `"aaaaaaaa-0000-7000-8000-000000000001"`, "the agent is archived"},
		{"agent_id", `7`, "agent_id must not be a JSON number"},
		// What only the platform says of a webhook, and what it does not know.
		{"id", quoted(never()), `not known: "id"`},
		{"token", quoted(long(32)), `not known: "token"`},
		{"tenant_id", quoted(globex.TenantID), `not known: "tenant_id"`},
		{"invocation_count", `7`, `not known: "invocation_count"`},
		{"last_invoked_at", `null`, `not known: "last_invoked_at"`},
		{"created_at", `null`, `not known: "created_at"`},
		{"updated_at", `null`, `not known: "updated_at"`},
		{"version", `1`, `not known: "version"`},
		{"token_hash", `""`, `not known: "token_hash"`},
		{"Enabled", `true`, `not known: "Enabled"`},
		{long(300), `1`, `not known: "` + long(100) + `…"`},
	} {
		p := refused(t, 400, "ValidationError", s.ask("POST", "/api/webhooks", with(c.member, c.value)))
		require.Contains(t, p.Detail, c.detail, "%s %.80s", c.member, c.value)
		require.Equal(t, "/api/webhooks", p.Instance)
	}
	for body, detail := range map[string]string{
		``:                              "not valid JSON",
		`{`:                             "not valid JSON",
		`{"name":"x"} x`:                "not valid JSON",
		`null`:                          "must be a JSON object",
		`[]`:                            "must be a JSON object",
		`"x"`:                           "must be a JSON object",
		`{}`:                            "name must not be empty",
		`{"name":"x"}`:                  "agent_id is required",
		`{"name":"x","name":"y"}`:       `the member "name" twice`,
		"{\"name\":\"\xff\"}":           "not valid UTF-8",
		strings.Repeat(`[`, 200000):     "must be a JSON object",
		strings.Repeat(`{"a":`, 200000): "not valid JSON",
	} {
		p := refused(t, 400, "ValidationError", s.ask("POST", "/api/webhooks", body, "Content-Type", "application/json"))
		require.Contains(t, p.Detail, detail, "%.80s", body)
	}
	refused(t, 413, "ValidationError", s.ask("POST", "/api/webhooks", with("description", quoted(long(handler.MaxBody)))))
	for _, typ := range []string{"", "text/plain", "application/merge-patch+json", "application/json; charset=latin1", "application/x-www-form-urlencoded"} {
		refused(t, 415, "ValidationError", s.ask("POST", "/api/webhooks", with("name", `"x"`), "Content-Type", typ))
	}
	refused(t, 415, "ValidationError", s.ask("POST", "/api/webhooks", with("name", `"x"`), "Content-Encoding", "gzip"))
	require.Equal(t, before, s.rows())

	// The bounds themselves are good.
	for member, value := range map[string]string{
		"name":        quoted(long(200)),
		"description": quoted(long(4000)),
		"prompt":      quoted(long(64 << 10)),
		"config":      quoted(fields{"a": long(16<<10 - len(`{"a":""}`))}),
		"rate_limit":  `1`,
		"target_type": `null`,
		"enabled":     `null`,
	} {
		read[webhook.Webhook](t, 201, s.ask("POST", "/api/webhooks", with(member, value)))
	}
	read[webhook.Webhook](t, 201, s.ask("POST", "/api/webhooks", with("config", deep[len(`{"a":`):len(deep)-1])))
	read[webhook.Webhook](t, 201, s.ask("POST", "/api/webhooks", with("rate_limit", `100000`)))
}
