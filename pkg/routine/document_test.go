package routine_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/routine"
)

// between is the first that a text has between two others.
func between(t *testing.T, text, before, after string) string {
	t.Helper()
	_, text, found := strings.Cut(text, before)
	require.True(t, found, before)
	text, _, found = strings.Cut(text, after)
	require.True(t, found, after)
	return text
}

// What docs/routines.md shows is what happens.
func TestTheDocumentedExample(t *testing.T) {
	w := newWorld(t)
	raw, err := os.ReadFile("../../docs/routines.md")
	require.NoError(t, err)
	document := string(raw)
	example := strings.ReplaceAll(between(t, document, "<<'EOF'\n", "\nEOF"), "01900000-0000-7000-8000-00000000a003", w.AgentID)
	broken := strings.Replace(strings.Replace(example, `"Next": "Order"`, `"Next": "Ordr"`, 1), `"text.$"`, `"txt": "", "text.$"`, 1)
	err = routine.Check(t.Context(), w.db.App.In(w.TenantID), "Order", broken)
	require.Error(t, err)
	require.Equal(t, between(t, document, "```text\n", "\n```"), err.Error())

	asked := map[string]json.RawMessage{}
	w.begin = func(c routine.Call) any {
		require.NoError(t, routine.CheckInput(c.Verb, c.Input))
		w.mu.Lock()
		defer w.mu.Unlock()
		asked[c.State] = c.Input
		switch c.Verb {
		case routine.RunTurn:
			return object{"threadId": "AUTO-1", "reply": "Yes, " + c.State}
		case routine.WaitForApproval:
			if strings.Contains(string(c.Input), "chair") {
				return refusal{"Denied", "we have one"}
			}
			return object{"decision": "approved"}
		}
		return object{"messageId": "1"}
	}
	w.run()
	order := w.made(example)
	run := w.over(w.started(order.ID, `{"item": "a desk", "price": "300 EUR", "buyer": "ada@acme.test"}`))
	require.Equal(t, routine.Succeeded, run.Status)
	require.JSONEq(t, `{"prompt": "Order a desk for 300 EUR?", "details": [{"says": "Yes, Price"}, {"says": "Yes, Need"}]}`, string(asked["Ask"]))
	require.JSONEq(t, `{"to": "ada@acme.test", "subject": "An order", "text": "Please order a desk."}`, string(asked["Order"]))
	run = w.over(w.started(order.ID, `{"item": "a chair", "price": "30 EUR", "buyer": "ada@acme.test"}`))
	require.JSONEq(t, `{"Error": "Denied", "Cause": "we have one"}`, *run.Output)
}
