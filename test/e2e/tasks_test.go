package e2e

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/ident"
	"github.com/agentplatform/agentplatform/pkg/oauth/oauthtest"
)

const consolePage = "https://console.example.test/connections"

// linear is Linear with one issue: its authorization server, as strict as OAuth allows, and its API.
type linear struct {
	*httptest.Server
	t                                    *testing.T
	authority                            *oauthtest.Server
	signing, organization, issue, number string
	ada, bo                              string // whose issue it is, and who works on it, as Linear names them

	mutex sync.Mutex
	state string
	asked []string // for the issue: whose token came
}

func newLinear(t *testing.T) *linear {
	l := &linear{t: t, authority: oauthtest.New(t), signing: rand.Text(), organization: ident.New(), issue: ident.New(), number: fmt.Sprint(time.Now().UnixMilli() % 1e6), ada: ident.New(),
		bo: ident.New(), state: "Todo"}
	l.authority.ClientSecret, l.authority.RedirectURIs = "the client's s3cret", []string{consolePage}
	mux := http.NewServeMux()
	mux.Handle("/oauth/", l.authority.At("/oauth"))
	mux.HandleFunc("POST /graphql", l.graphql)
	l.Server = httptest.NewServer(mux)
	t.Cleanup(l.Close)
	return l
}

func (l *linear) graphql(w http.ResponseWriter, r *http.Request) {
	var q struct{ Query string }
	person, good := l.authority.Whose(r)
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil || !good {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if strings.Contains(q.Query, "viewer") {
		fmt.Fprintf(w, `{"data":{"viewer":{"id":%q,"name":"Ada Byron","organization":{"id":%q,"name":"Acme"}}}}`, person, l.organization)
		return
	}
	l.asked = append(l.asked, person)
	fmt.Fprintf(w, `{"data":{"issue":%s}}`, l.is(""))
}

// is the issue as JSON: to the API as it is, in an event with what an event calls things.
func (l *linear) is(more string) string {
	kind := map[string]string{"Todo": "unstarted", "In Progress": "started"}[l.state]
	return fmt.Sprintf(`{"id":%q,"identifier":"ENG-%s","title":"Rotate the key","url":"https://linear.app/acme/issue/ENG-%s","dueDate":"2030-03-09","updatedAt":%q,
		"state":{"name":%q,"type":%q},"assignee":{"id":%q,"name":"Ada Byron"}%s}`, l.issue, l.number, l.number, time.Now().UTC().Format(time.RFC3339Nano), l.state, kind, l.ada, more)
}

// happens is a delivery: Bo has changed what member names.
func (l *linear) happens(member string) string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	now := time.Now()
	return fmt.Sprintf(`{"action":"update","type":"Issue","actor":{"id":%q,"name":"Bo Chen"},"createdAt":%q,"data":%s,"updatedFrom":{%q:null},"organizationId":%q,"webhookTimestamp":%d}`,
		l.bo, now.UTC().Format(time.RFC3339Nano), l.is(fmt.Sprintf(`,"assigneeId":%q`, l.ada)), member, l.organization, now.UnixMilli())
}

func (l *linear) moves(state string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.state = state
}

// connect links a user to Linear as a person there, as the console's page does it.
func (l *linear) connect(u *user, integration, person string) answer {
	l.t.Helper()
	begun := u.query(l.t, `mutation ($input: StartConnectionInput!) { startConnection(input: $input) { authorizationUrl } }`,
		vars{"input": vars{"integrationId": integration, "redirectUri": consolePage}})
	state, code := l.authority.Consent(l.t, begun.get("startConnection.authorizationUrl"), person)
	const complete = `mutation ($input: CompleteConnectionInput!) { completeConnection(input: $input) { id provider providerUserId account accountName status scopes userId } }`
	input := vars{"input": vars{"state": state, "code": code}}
	other, err := u.as(l.t, "alice").ask(complete, input)
	require.NoError(l.t, err)
	require.Contains(l.t, other.problem(), "400 ValidationError the state is not one that you have begun", "another user's state is of no use")
	made := u.query(l.t, complete, input)
	again, err := u.ask(complete, input)
	require.NoError(l.t, err)
	require.Contains(l.t, again.problem(), "400 ValidationError the state is not one", "a state is good once")
	return made
}

// TestATaskMoves: what Linear says of a task is in the task's thread a moment later, with the task as Linear's API shows it to the user who is connected; who
// watches the thread sees it, and the assignee's phone is told.
func TestATaskMoves(t *testing.T) {
	t.Parallel()
	p, api := sharedPlatform(t), newLinear(t)
	alice, max := p.as(t, "alice"), p.as(t, "max")
	config, err := json.Marshal(vars{"clientId": api.authority.ClientID, "redirectUris": []string{consolePage}, "apiUrl": api.URL, "authUrl": api.URL})
	require.NoError(t, err)
	integration := alice.query(t, `mutation ($input: CreateIntegrationInput!) { createIntegration(input: $input) { id } }`, vars{"input": vars{"name": "Linear " + api.issue, "provider": "linear",
		"config": string(config), "secret": vars{"token": api.authority.ClientSecret}}}).get("createIntegration.id")
	connected := api.connect(max, integration, api.ada)
	require.Equal(t, []string{"linear", api.ada, api.organization, "Acme", "active", `["read"]`}, []string{connected.get("completeConnection.provider"), connected.get("completeConnection.providerUserId"),
		connected.get("completeConnection.account"), connected.get("completeConnection.accountName"), connected.get("completeConnection.status"), connected.get("completeConnection.scopes")})
	device := max.query(t, `mutation ($token: String!) { registerDevice(input: {platform: apns, token: $token}) { id platform } }`, vars{"token": mac("phone", api.issue)})
	require.Equal(t, "apns", device.get("registerDevice.platform"))

	hook := alice.asked(t, http.StatusCreated, http.MethodPost, "/api/webhooks", `{"name":"Linear","target_type":"task","config":{"provider":"linear"},"signing_secret":"`+api.signing+`"}`)
	require.Equal(t, "true", hook.get("has_signing_secret"))
	require.NotContains(t, string(hook.body), api.signing)
	send := func(token, body string, headers ...string) restAnswer {
		t.Helper()
		a, err := p.rest(t, http.MethodPost, "/integrations/linear/webhook?token="+token, "", body, headers...)
		require.NoError(t, err)
		return a
	}
	signed := func(body string) []string {
		return []string{"Linear-Signature: " + mac(api.signing, body), "Linear-Delivery: " + ident.New()}
	}

	given := api.happens("assigneeId")
	require.Equal(t, "401 Unauthorized the delivery is not signed with the webhook's secret", send(hook.get("token"), given).problem())
	require.Equal(t, "401 Unauthorized no webhook of this provider has this token", send("x"+hook.get("token"), given, signed(given)...).problem())
	require.Equal(t, "ok", send(hook.get("token"), given, signed(given)...).get("outcome"))
	require.Equal(t, "duplicate", send(hook.get("token"), given, signed(given)...).get("outcome"), "by its body, whatever its id")
	var thread string
	require.NoError(t, until(func() (bool, error) {
		a, err := alice.ask(`query ($id: ID!) { listDeliveries(filter: {webhookId: $id, outcome: ok}) { items { threadId } } }`, vars{"id": hook.get("id")})
		thread = a.get("listDeliveries.items.0.threadId")
		return strings.HasPrefix(thread, "TASK-"), err
	}))

	seen := alice.watch(t, thread)
	api.moves("In Progress")
	moved := api.happens("stateId")
	began := time.Now()
	require.Equal(t, "ok", send(hook.get("token"), moved, signed(moved)...).get("outcome"))
	name := "ENG-" + api.number
	at, err := seen.await(0, func(e event) bool {
		return e.Message.Role == "system" && e.Message.Body == "Bo Chen moved "+name+" to In Progress"
	})
	require.NoError(t, err)
	t.Logf("%s from the delivery to the event of its message", time.Since(began).Round(time.Millisecond))
	at, err = seen.await(at, func(e event) bool { return e.Typename == "ThreadUpdateEvent" })
	require.NoError(t, err)
	updated := seen.seen()[at].Thread
	require.Equal(t, name+": Rotate the key", updated.Title)
	envelope := member(json.RawMessage(updated.Metadata), "external.latestEnvelope")
	require.Equal(t, []string{"In Progress", "started", "live", "2030-03-09"}, []string{member(json.RawMessage(envelope), "status"), member(json.RawMessage(envelope), "statusType"),
		member(json.RawMessage(envelope), "source"), member(json.RawMessage(envelope), "due")})
	require.Equal(t, "true", member(json.RawMessage(updated.Metadata), "external.verified"))
	require.Equal(t, []string{api.ada, api.ada}, func() []string {
		api.mutex.Lock()
		defer api.mutex.Unlock()
		return api.asked
	}(), "as the user who is connected, once an event")
	require.Len(t, alice.messages(t, thread), 2, "no turn is started")

	var push []string
	require.NoError(t, until(func() (bool, error) {
		push = regexp.MustCompile(`href="(/local/outbox/[^"]+)">` + name + `: Rotate the key`).FindStringSubmatch(outboxShows(t, p, "/local/outbox"))
		return push != nil && strings.Contains(outboxShows(t, p, push[1]), "to In Progress"), nil
	}))
	require.Contains(t, outboxShows(t, p, push[1]), `"threadId": "`+thread+`"`)

	api.Close() // Linear's API is gone: what the event says itself has to do
	api.moves("Todo")
	back := api.happens("stateId")
	require.Equal(t, "ok", send(hook.get("token"), back, signed(back)...).get("outcome"))
	at, err = seen.await(at+1, func(e event) bool { return e.Typename == "ThreadUpdateEvent" })
	require.NoError(t, err)
	envelope = member(json.RawMessage(seen.seen()[at].Thread.Metadata), "external.latestEnvelope")
	require.Equal(t, []string{"Todo", "synthetic"}, []string{member(json.RawMessage(envelope), "status"), member(json.RawMessage(envelope), "source")})

	for query, id := range map[string]string{`mutation ($id: ID!) { unregisterDevice(id: $id) { id } }`: device.get("registerDevice.id"),
		`mutation ($id: ID!) { deleteConnection(id: $id) { id } }`: connected.get("completeConnection.id")} {
		max.query(t, query, vars{"id": id})
	}
	alice.query(t, `mutation ($id: ID!) { deleteIntegration(id: $id) { id } }`, vars{"id": integration})
}
