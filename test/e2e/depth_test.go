package e2e

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/test/mcp"
)

// TestOneConversationInDepth: in one conversation an agent uses a tool of an MCP server, runs code in the sandbox, has an input masked, is denied a tool
// and hits its budget; each turn's record explains what happened.
func TestOneConversationInDepth(t *testing.T) {
	t.Parallel()
	p := sharedPlatform(t)
	alice := p.as(t, "alice")
	server := alice.query(t, `mutation ($input: AddToolServerInput!) { addToolServer(input: $input) { id error } }`, vars{"input": vars{"name": "depth", "url": mcp.Everything(t, false)}})
	require.Empty(t, server.get("addToolServer.error"))
	defer alice.query(t, `mutation ($id: ID!) { removeToolServer(id: $id) { id } }`, vars{"id": server.get("addToolServer.id")})
	guardrail := alice.query(t, `mutation { createGuardrail(input: {name: "Depth", kind: RULES, rules: [{stages: [input], action: mask, builtIn: [EMAIL]}]}) { id } }`, nil).get("createGuardrail.id")
	agent := alice.query(t, `mutation ($g: ID!) { createAgent(input: {name: "Deep", tools: ["depth__echo", "run_code"], guardrailId: $g}) { id } }`, vars{"g": guardrail}).get("createAgent.id")
	thread := alice.query(t, `mutation ($a: ID!) { createThread(input: {agentId: $a}) { id } }`, vars{"a": agent}).get("createThread.id")

	first := alice.send(t, thread, `/say I am eve@example.com.`, `/tool depth__echo {"message":"hello"}`, `/tool run_code {"code":"return [1,2,3].reduce((a, b) => a + b)"}`, `/tool read_thread {"threadId":"`+thread+`"}`)
	r := alice.record(t, first)
	require.Equal(t, "succeeded", r.Status)
	require.Equal(t, []string{"depth__echo ok", "run_code ok", "read_thread denied"}, r.outcomes())
	require.Contains(t, *r.ToolOutcomes[0].Output, "Echo: hello")
	require.Contains(t, *r.ToolOutcomes[1].Output, "6")
	require.Contains(t, *r.ToolOutcomes[2].Error, "not granted")
	require.Len(t, r.GuardrailDecisions, 1)
	require.Equal(t, "input mask EMAIL", r.GuardrailDecisions[0].Stage+" "+r.GuardrailDecisions[0].Action+" "+r.GuardrailDecisions[0].Spans[0].Kind)
	require.Equal(t, "model", r.Steps[0].Kind)
	require.Contains(t, *r.Steps[0].Request, "I am [EMAIL].")
	require.Contains(t, *r.Steps[0].Request, `"name":"depth__echo"`)
	require.NotContains(t, *r.Steps[0].Request, `"name":"read_thread"`, "what is not granted is not offered")
	for _, s := range r.Steps {
		require.NotContains(t, *s.Request+*s.Response, "eve@example.com")
	}

	alice.query(t, `mutation ($a: ID!) { setBudget(input: {scope: AGENT, scopeId: $a, tokensPerTurn: 1}) { tokensPerTurn } }`, vars{"a": agent})
	r = alice.record(t, alice.send(t, thread, `/tool depth__echo {"message":"again"}`, `/say done`))
	require.Equal(t, "failed", r.Status)
	require.Contains(t, *r.Error, "tokens")
	require.Equal(t, []string{"depth__echo ok"}, r.outcomes())
	require.Contains(t, *r.Steps[0].Request, "I am [EMAIL].", "what was masked stays so in later turns")
	require.Len(t, r.Steps, 2, "the model was asked once")

	alice.query(t, `mutation ($a: ID!) { setBudget(input: {scope: AGENT, scopeId: $a, monthlyUsd: "0.000001"}) { monthlyUsd } }`, vars{"a": agent})
	refused, err := alice.ask(sendDocument, vars{"input": vars{"threadId": thread, "body": "More"}})
	require.NoError(t, err)
	require.Contains(t, refused.problem(), "429 BudgetExceeded")
}

// record is what turn(id) tells, once the turn has ended.
type record struct {
	Status       string
	Error        *string
	ToolOutcomes []struct {
		Name, Status  string
		Output, Error *string
	}
	GuardrailDecisions []struct {
		Stage, Action string
		Spans         []struct{ Kind string }
	}
	Steps []struct {
		Kind, Name, Status string
		Request, Response  *string
	}
}

func (r record) outcomes() (all []string) {
	for _, o := range r.ToolOutcomes {
		all = append(all, o.Name+" "+o.Status)
	}
	return all
}

func (u *user) record(t testing.TB, id string) (r record) {
	t.Helper()
	u.ended(t, id)
	raw := u.query(t, `query ($id: ID!) { turn(id: $id) { status error toolOutcomes { name status output error } guardrailDecisions { stage action spans { kind } }
		steps { kind name status request response } } }`, vars{"id": id}).get("turn")
	require.NoError(t, json.Unmarshal([]byte(raw), &r))
	return r
}
