package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/test/mcp"
)

// TestToolServers: in one conversation an agent calls a tool of an MCP server, over each transport, and fetches a page; what it is not granted, and what it
// may not fetch from, it is denied.
func TestToolServers(t *testing.T) {
	t.Parallel()
	p := sharedPlatform(t)
	alice := p.as(t, "alice")
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<html><body><h1>Opening hours</h1><p>Until <b>nine</b>.</p></body></html>`)
	}))
	defer page.Close()
	agent := alice.query(t, `mutation { createAgent(input: {name: "Connected", tools: ["http_fetch", "plain__*", "old__echo"], fetchHosts: ["127.0.0.1"]}) { id } }`, nil).get("createAgent.id")
	for name, sse := range map[string]bool{"plain": false, "old": true} {
		added := alice.query(t, `mutation ($input: AddToolServerInput!) { addToolServer(input: $input) { id error tools { name status } } }`,
			vars{"input": vars{"name": name, "url": mcp.Everything(t, sse)}})
		require.Empty(t, added.get("addToolServer.error"))
		require.Contains(t, added.get("addToolServer.tools"), `{"name":"`+name+`__echo","status":"APPROVED"}`)
		id := added.get("addToolServer.id")
		defer alice.query(t, `mutation ($id: ID!) { removeToolServer(id: $id) { id } }`, vars{"id": id})
	}
	thread := alice.query(t, `mutation ($agent: ID!) { createThread(input: {agentId: $agent}) { id } }`, vars{"agent": agent}).get("createThread.id")
	id := alice.send(t, thread, `/tool plain__echo {"message":"one"}`, `/tool old__echo {"message":"two"}`, `/tool old__get-sum {"a":1,"b":2}`,
		`/tool http_fetch {"url":"`+page.URL+`"}`, `/tool http_fetch {"url":"http://169.254.169.254/latest/meta-data/"}`, `/tool plain__echo {"message":3}`)
	_, record, err := alice.awaitTurn(id)
	require.NoError(t, err)
	var turn struct {
		Status       string
		ToolOutcomes []struct {
			Name, Status  string
			Output, Error *string
		}
	}
	require.NoError(t, json.Unmarshal(record, &turn))
	require.Equal(t, "succeeded", turn.Status)
	require.Len(t, turn.ToolOutcomes, 6)
	statuses := make([]string, 6)
	for i, o := range turn.ToolOutcomes {
		statuses[i] = o.Status
	}
	require.Equal(t, []string{"ok", "ok", "denied", "ok", "error", "error"}, statuses, "%s", record)
	require.Contains(t, *turn.ToolOutcomes[0].Output, `"text":"Echo: one"`)
	require.Contains(t, *turn.ToolOutcomes[1].Output, `"text":"Echo: two"`)
	require.Contains(t, *turn.ToolOutcomes[3].Output, `# Opening hours\n\nUntil nine.`)
	require.Contains(t, *turn.ToolOutcomes[4].Error, "may not fetch from 169.254.169.254")
	require.Contains(t, *turn.ToolOutcomes[5].Error, "input: ", "the schema is the server's, and held before it is asked")
}
