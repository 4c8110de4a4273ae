package agent_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	functions "github.com/agentplatform/agentplatform/functions/agent"
	"github.com/agentplatform/agentplatform/pkg/agent"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/handler/handlertest"
)

// members are the members of v's JSON.
func members(t *testing.T, v any) (all args) {
	t.Helper()
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &all))
	return all
}

// settings are an agent's by field: whose each is, and its value.
func (w templates) settings(agents ...agent.Agent) []map[string][2]any {
	w.t.Helper()
	parents := make([]any, len(agents))
	for i, a := range agents {
		parents[i] = a
	}
	answers, err := handlertest.Call[[][]agent.Setting](w.t, w.p, "agent-settings", functions.AgentSettings, w.owner, args{}, parents...)
	require.Nil(w.t, err)
	all := make([]map[string][2]any, len(answers))
	for i, list := range answers {
		all[i] = map[string][2]any{}
		for _, s := range list {
			var value any
			if s.Value != nil {
				require.NoError(w.t, json.Unmarshal([]byte(*s.Value), &value))
			}
			all[i][s.Field] = [2]any{string(s.From), value}
		}
		require.Len(w.t, all[i], len(list), "each field once")
	}
	return all
}

func (w templates) agent(id string, input args) (agent.Agent, *fault.Error) {
	return handlertest.Call[agent.Agent](w.t, w.p, "update-agent", functions.UpdateAgent, w.owner, args{"id": id, "input": input})
}

// Field by field: what the agent sets is its own, what it does not is its template's, and null gives it back.
func TestAnAgentsSettings(t *testing.T) {
	w := newTemplates(t)
	fields := w.fields()
	want := map[string][2]any{"modelId": {"template", "offline.echo-1"}, "runtime": {"template", "default"}, "systemPrompt": {"template", nil}, "tools": {"template", []any{"read_thread"}},
		"toolApprovals": {"template", []any{}}, "guardrailId": {"template", nil}, "skillPackIds": {"template", nil}, "knowledgeBaseId": {"template", nil},
		"fetchHosts": {"template", []any{}}, "evaluators": {"template", nil}}
	require.Len(t, fields, len(want))
	a, err := w.agent(w.AgentID, args{"systemPrompt": nil})
	require.Nil(t, err)
	require.Equal(t, want, w.settings(a)[0])
	for field, value := range fields {
		a, err = w.agent(w.AgentID, args{field: value})
		require.Nil(t, err, field)
		require.Equal(t, value, members(t, a)[field])
		given := want[field]
		want[field] = [2]any{"agent", value}
		require.Equal(t, want, w.settings(a)[0], field)
		got, err := handlertest.Call[agent.Agent](t, w.p, "get-agent", functions.GetAgent, w.owner, args{"id": w.AgentID})
		require.Nil(t, err)
		require.Equal(t, a, got)
		a, err = w.agent(w.AgentID, args{field: nil})
		require.Nil(t, err, field)
		want[field] = given
		require.Equal(t, want, w.settings(a)[0], field)
	}

	// An empty list is a list: its own.
	a, err = w.agent(w.AgentID, args{"tools": []any{}})
	require.Nil(t, err)
	require.Equal(t, [2]any{"agent", []any{}}, w.settings(a)[0]["tools"])

	// Of a page of agents, each of its own template.
	large, err := w.create(args{"name": "Large", "modelId": "vendor.large-1", "systemPrompt": "Think."})
	require.Nil(t, err)
	other, err := handlertest.Call[agent.Agent](t, w.p, "create-agent", functions.CreateAgent, w.owner, args{"input": args{"name": "Eve", "templateId": large.ID, "modelId": "vendor.small-1", "runtime": "large"}})
	require.Nil(t, err)
	both := w.settings(a, other)
	require.Equal(t, [2]any{"template", "offline.echo-1"}, both[0]["modelId"])
	require.Equal(t, [2]any{"agent", "vendor.small-1"}, both[1]["modelId"])
	require.Equal(t, [2]any{"agent", "large"}, both[1]["runtime"])
	require.Equal(t, [2]any{"template", "Think."}, both[1]["systemPrompt"])
	for _, input := range []args{{"modelId": ""}, {"runtime": "Large"}} {
		_, err = w.agent(w.AgentID, input)
		require.Equal(t, fault.ValidationError, err.Type)
	}
}
