package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// outboxShows is a page of the outbox.
func outboxShows(t *testing.T, p *platform, path string) string {
	t.Helper()
	res, err := plainClient.Get(p.Outputs.APIURL + path)
	require.NoError(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, res.StatusCode)
	return string(text)
}

// TestAgentsSendMail: an agent writes to people of its tenant, and the outbox has what they would have got; strangers are refused, also those of another tenant,
// and an agent that is not granted the tool is denied.
func TestAgentsSendMail(t *testing.T) {
	t.Parallel()
	p := sharedPlatform(t)
	alice := p.as(t, "alice")
	type outcome struct {
		Name, Status  string
		Output, Error *string
	}
	turn := func(tools string, lines ...string) (outcomes []outcome, offered string) {
		t.Helper()
		agent := alice.query(t, `mutation { createAgent(input: {name: "Writer", tools: [`+tools+`]}) { id } }`, nil).get("createAgent.id")
		thread := alice.query(t, `mutation ($agent: ID!) { createThread(input: {agentId: $agent}) { id } }`, vars{"agent": agent}).get("createThread.id")
		id := alice.send(t, thread, lines...)
		_, record, err := alice.awaitTurn(id)
		require.NoError(t, err)
		var got struct {
			Status       string
			ToolOutcomes []outcome
		}
		require.NoError(t, json.Unmarshal(record, &got))
		require.Equal(t, "succeeded", got.Status, "%s", record)
		require.Len(t, got.ToolOutcomes, len(lines))
		return got.ToolOutcomes, alice.query(t, `query ($id: ID!) { turn(id: $id) { steps { request } } }`, vars{"id": id}).get("turn.steps.0.request")
	}

	got, offered := turn(`"send_email"`, `/tool send_email {"to":["max@acme.test","alice@acme.test"],"subject":"Grüße aus dem Turn","text":"Es ist\nvollbracht."}`,
		`/tool send_email {"to":["max@acme.test","eve@example.com"],"subject":"To a stranger","text":"x"}`,
		`/tool send_email {"to":["bob@globex.test"],"subject":"To another tenant","text":"x"}`,
		`/tool send_email {"to":["max@acme.test"],"subject":"Without a text"}`)
	require.Contains(t, offered, `"name":"send_email"`)
	statuses := make([]string, len(got))
	for i, o := range got {
		statuses[i] = o.Status
	}
	require.Equal(t, []string{"ok", "error", "error", "error"}, statuses)
	require.Equal(t, "eve@example.com is no user of this organisation", *got[1].Error)
	require.Equal(t, "bob@globex.test is no user of this organisation", *got[2].Error)
	require.Contains(t, *got[3].Error, "input: ")
	var sent struct{ MessageID string }
	require.NoError(t, json.Unmarshal([]byte(*got[0].Output), &sent))

	page := outboxShows(t, p, "/local/outbox")
	require.NotContains(t, page, "To a stranger")
	require.NotContains(t, page, "To another tenant")
	link := regexp.MustCompile(`href="(/local/outbox/[^"]+)">Grüße aus dem Turn`).FindStringSubmatch(page)
	require.NotNil(t, link, page)
	mail := outboxShows(t, p, link[1])
	for _, line := range []string{"From: <agents@localhost.localdomain>", "To: max@acme.test, alice@acme.test", "Message-ID: " + sent.MessageID, "Auto-Submitted: auto-generated"} {
		require.Contains(t, "\r\n"+mail, "\r\n"+line+"\r\n")
	}
	require.Contains(t, mail, "Es ist\r\nvollbracht.")

	got, offered = turn(`"read_thread"`, `/tool send_email {"to":["max@acme.test"],"subject":"Not granted","text":"x"}`)
	require.NotContains(t, offered, `"name":"send_email"`)
	require.Equal(t, "denied", got[0].Status)
	require.NotContains(t, outboxShows(t, p, "/local/outbox"), "Not granted")
}
