package agent_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/agent"
)

// A client token's input is told by its bytes: a call that is repeated after a deployment must still be the same one. What is new stands where nothing stood.
func TestFieldsKeepTheirOrder(t *testing.T) {
	const given = `{"name":"Ada","description":null,"status":"active","systemPrompt":"","templateId":"t","skillPackIds":["a"],"knowledgeBaseId":"k","guardrailId":"g","tools":[],` +
		`"toolApprovals":[],"evaluators":[],"fetchHosts":[],"modelId":"m","runtime":"r","rateLimits":{"turnsPerMinute":1,"turnsPerHour":null,"turnsPerDay":null}}`
	for _, text := range []string{given, `{}`, `{"name":"Ada","rateLimits":null}`} {
		var f agent.Fields
		require.NoError(t, json.Unmarshal([]byte(text), &f))
		raw, err := json.Marshal(f)
		require.NoError(t, err)
		require.Equal(t, text, string(raw))
	}
}
