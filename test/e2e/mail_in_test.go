package e2e

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// receives hands a mail to the platform as the mail service has received it.
func (p *platform) receives(t *testing.T, from, to, mail string, verdicts ...string) {
	t.Helper()
	query := url.Values{"from": {from}, "to": {to}}
	for _, v := range verdicts {
		query.Set(v, "FAIL")
	}
	mail = "From: " + from + "\r\nTo: " + to + "\r\n" + strings.ReplaceAll(mail, "\n", "\r\n")
	res, err := plainClient.Post(p.Outputs.APIURL+"/local/inbox?"+query.Encode(), "message/rfc822", strings.NewReader(mail))
	require.NoError(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, res.StatusCode, "%s", text)
}

// sentMails are those of a subject that went out, newest first.
func (p *platform) sentMails(t *testing.T, subject string, n int) (all []string) {
	t.Helper()
	require.NoError(t, until(func() (bool, error) {
		all = nil
		for _, link := range regexp.MustCompile(`href="(/local/outbox/[^"]+)">`+subject).FindAllStringSubmatch(outboxShows(t, p, "/local/outbox"), -1) {
			all = append(all, outboxShows(t, p, link[1]))
		}
		return len(all) >= n, nil
	}))
	require.Len(t, all, n)
	return all
}

// TestAMailIsAnswered: a user's mail opens a thread and is answered by mail, and who answers that mail goes on in the thread. Nobody else is heard: no stranger,
// no user of another tenant, nobody who is not who he says, and no program.
func TestAMailIsAnswered(t *testing.T) {
	t.Parallel()
	p := sharedPlatform(t)
	alice := p.as(t, "alice")
	word := strings.ToLower(rand.Text())
	agent := alice.query(t, make_, vars{"input": vars{"name": "By mail"}}).get("createAgent.id")
	made := alice.query(t, `mutation ($input: CreateIntegrationInput!) { createIntegration(input: $input) { id address url hasSecret } }`,
		vars{"input": vars{"name": "Desk " + word, "provider": "email", "agentId": agent, "config": fmt.Sprintf(`{"address":"desk-%s"}`, word)}})
	id, desk := made.get("createIntegration.id"), made.get("createIntegration.address")
	require.Equal(t, "desk-"+word+"@in.localhost.localdomain", desk)
	require.Empty(t, made.get("createIntegration.url"), "it gets none by HTTP")

	first := "Subject: Printer " + word + "\nMessage-ID: <1-" + word + "@acme.test>\n\n/say It is noted.\n"
	p.receives(t, "max@acme.test", desk, first)
	answer := p.sentMails(t, "Re: Printer "+word, 1)[0]
	require.Contains(t, answer, "\r\nTo: max@acme.test\r\n")
	require.Contains(t, answer, "\r\nIn-Reply-To: <1-"+word+"@acme.test>\r\n")
	require.Contains(t, answer, "It is noted.")
	back := regexp.MustCompile(`\r\nReply-To: <?(reply\+[0-9a-f]{32}@in\.localhost\.localdomain)>?\r\n`).FindStringSubmatch(answer)
	require.NotNil(t, back, answer)
	messageID := regexp.MustCompile(`(?m)^Message-ID: (<[^>]+>)\r$`).FindStringSubmatch(answer)
	require.NotNil(t, messageID, answer)

	p.receives(t, "max@acme.test", back[1], "Subject: Re: Printer "+word+"\nMessage-ID: <2-"+word+"@acme.test>\nIn-Reply-To: "+messageID[1]+"\n\n/say It goes on.\n\nOn Mon, Nov 23, 2026 at 9:12 AM <agents@localhost.localdomain> wrote:\n> It is noted.\n")
	require.Contains(t, p.sentMails(t, "Re: Printer "+word, 2)[0], "It goes on.")

	p.receives(t, "max@acme.test", desk, first)
	for from, verdicts := range map[string][]string{"eve@example.com": nil, "bob@globex.test": nil, "alice@acme.test": {"spf", "dkim", "dmarc"}} {
		p.receives(t, from, back[1], "Subject: Let me in\nMessage-ID: <3-"+from+">\n\n/say x\n", verdicts...)
	}
	p.receives(t, "max@acme.test", desk, "Subject: I am away\nAuto-Submitted: auto-replied\nMessage-ID: <4-"+word+"@acme.test>\n\n/say x\n")
	type delivery struct{ Outcome, Event, ThreadID, Error string }
	var log []delivery
	require.NoError(t, until(func() (bool, error) {
		a, err := alice.ask(`query ($id: ID!) { listDeliveries(filter: {integrationId: $id}) { items { outcome event threadId error } } }`, vars{"id": id})
		if log = nil; err == nil {
			err = json.Unmarshal([]byte(a.get("listDeliveries.items")), &log)
		}
		return len(log) == 7, err
	}))
	thread := log[len(log)-1].ThreadID
	require.Regexp(t, `^EMAIL-[0-9]+$`, thread)
	require.ElementsMatch(t, []delivery{
		{"ok", "mail", thread, ""}, {"ok", "reply", thread, ""}, {"duplicate", "mail", "", ""},
		{"unknown", "reply", "", "eve@example.com is not an active user"}, {"unknown", "reply", "", "bob@globex.test is not an active user"},
		{"unverified", "reply", "", "neither SPF nor DKIM says that it comes from acme.test"}, {"ok", "mail", "", "nobody is answered: a program has written it (Auto-Submitted)"},
	}, log)
	var bodies []string
	for _, m := range alice.messages(t, thread) {
		bodies = append(bodies, m.Role+": "+m.Body)
	}
	require.Equal(t, []string{"user: Subject: Printer " + word + "\n\n/say It is noted.", "assistant: It is noted.", "user: /say It goes on.", "assistant: It goes on."}, bodies)
	p.sentMails(t, "Re: Printer "+word, 2)
}
