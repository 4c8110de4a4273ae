package tracker_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/egress"
	"github.com/agentplatform/agentplatform/pkg/provider"
	"github.com/agentplatform/agentplatform/pkg/tracker"
)

// api is a tracker's API that answers with files of testdata, by method and path, and keeps what it was asked.
type api struct {
	t       *testing.T
	answers map[string]string // path: file, or "status file" or "status"
	header  http.Header
	asked   []string
	bodies  []string
}

func (a *api) start() (*http.Client, tracker.Config) {
	server := httptest.NewServer(a)
	a.t.Cleanup(server.Close)
	return egress.New(egress.Config{Loopback: true}), tracker.Config{APIURL: server.URL + "/"}
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	a.asked, a.bodies = append(a.asked, r.Method+" "+r.URL.RequestURI()), append(a.bodies, string(body))
	answer, status, is := a.answers[r.URL.Path], http.StatusOK, false
	if r.Header.Get("Authorization") != "Bearer the-token" {
		w.WriteHeader(http.StatusTeapot)
		return
	}
	switch code, file, two := strings.Cut(answer, " "); code {
	case "400", "401", "403", "404", "429", "500":
		status, answer, is = map[string]int{"400": 400, "401": 401, "403": 403, "404": 404, "429": 429, "500": 500}[code], file, two
	default:
		is = answer != ""
	}
	for name, values := range a.header {
		w.Header()[name] = values
	}
	w.WriteHeader(status)
	if is {
		raw, err := os.ReadFile("testdata/" + answer)
		if err == nil {
			_, _ = w.Write(raw)
		}
	}
}

const (
	linearTask = "2174add1-f7c8-44e3-bbf3-2d60b5ea8bc9"
	asanaTask  = "1234567890987654321"
	jiraSite   = "1324a887-45db-1bf4-1e99-ef0ff456d421"
)

func TestLive(t *testing.T) {
	for _, c := range []struct {
		provider string
		event    tracker.Event
		answers  map[string]string
		want     string
	}{
		{"linear", tracker.Event{TaskID: linearTask}, map[string]string{"/graphql": "linear/live/issue.json"},
			`{"provider":"linear","taskId":"` + linearTask + `","key":"ENG-123","title":"Rotate the signing key","url":"https://linear.app/acme/issue/ENG-123/rotate-the-signing-key",
			"status":"Todo","statusType":"open","assignee":{"id":"b1a5e2a0-6f0e-4b6e-9a53-3f3b1b1c0a01","name":"Ada Byron"},"due":"2026-03-09","updatedAt":"2026-03-02T10:09:00Z","source":"live"}`},
		{"jira", tracker.Event{TaskID: "10411", Account: "your-domain1.atlassian.net"}, map[string]string{"/oauth/token/accessible-resources": "jira/live/accessible-resources.json",
			"/ex/jira/" + jiraSite + "/rest/api/3/issue/10411": "jira/live/issue.json"},
			`{"provider":"jira","taskId":"10411","key":"TM-100","title":"PR #22 Failed to Merge - Please Investigate","url":"https://your-domain1.atlassian.net/browse/TM-100",
			"status":"In Progress","statusType":"started","assignee":{"id":"5b10a2844c20165700ede21g","name":"Ada Byron"},"due":"2025-03-10","updatedAt":"2025-03-02T21:20:00Z","source":"live"}`},
		{"asana", tracker.Event{TaskID: asanaTask}, map[string]string{"/api/1.0/tasks/" + asanaTask: "asana/live/task.json"},
			`{"provider":"asana","taskId":"` + asanaTask + `","key":null,"title":"Rotate the signing key","url":"https://app.asana.com/1/1331/project/123123123/task/` + asanaTask + `",
			"status":"Doing","statusType":"open","assignee":{"id":"1201111111111111","name":"Ada Byron"},"due":"2026-04-24","updatedAt":"2026-04-21T10:10:04.1Z","source":"live"}`},
	} {
		a := &api{t: t, answers: c.answers}
		client, config := a.start()
		got, err := of(t, c.provider).Live(t.Context(), client, config, "the-token", &c.event)
		require.NoError(t, err, c.provider)
		text, err := json.Marshal(got)
		require.NoError(t, err)
		require.JSONEq(t, c.want, string(text), c.provider)
		require.NotContains(t, strings.Join(a.asked, " "), "the-token")

		other := c.event
		other.TaskID += "1" // the API answers with another task than it was asked for
		for path, file := range c.answers {
			a.answers[strings.Replace(path, c.event.TaskID, other.TaskID, 1)] = file
		}
		_, err = of(t, c.provider).Live(t.Context(), client, config, "the-token", &other)
		failed(t, err, provider.Missing)
	}
}

// A token is used for tasks of its own account only, where the provider tells which one that is.
func TestLiveOfAnotherAccount(t *testing.T) {
	for _, c := range []struct {
		provider, own string
		event         tracker.Event
		answers       map[string]string
	}{
		{"linear", "org-1", tracker.Event{TaskID: linearTask, Account: "org-1"}, map[string]string{"/graphql": "linear/live/issue.json"}},
		{"jira", jiraSite, tracker.Event{TaskID: "10411", Account: "your-domain1.atlassian.net"}, map[string]string{"/oauth/token/accessible-resources": "jira/live/accessible-resources.json",
			"/ex/jira/" + jiraSite + "/rest/api/3/issue/10411": "jira/live/issue.json"}},
		{"asana", "1331", tracker.Event{TaskID: asanaTask}, map[string]string{"/api/1.0/tasks/" + asanaTask: "asana/live/task.json"}},
	} {
		a := &api{t: t, answers: c.answers}
		client, config := a.start()
		config.Account = c.own
		_, err := of(t, c.provider).Live(t.Context(), client, config, "the-token", &c.event)
		require.NoError(t, err, c.provider)
		config.Account, a.asked = "another", nil
		_, err = of(t, c.provider).Live(t.Context(), client, config, "the-token", &c.event)
		failed(t, err, provider.Missing)
		if c.provider != "asana" { // whose events do not say it
			require.NotContains(t, strings.Join(a.asked, " ")+strings.Join(a.bodies[len(a.bodies)-len(a.asked):], " "), c.event.TaskID)
		}
	}
}

func TestLiveJiraOfAnotherSite(t *testing.T) {
	a := &api{t: t, answers: map[string]string{"/oauth/token/accessible-resources": "jira/live/accessible-resources.json"}}
	client, config := a.start()
	for _, account := range []string{"", "other.atlassian.net", "../" + jiraSite} {
		_, err := of(t, "jira").Live(t.Context(), client, config, "the-token", &tracker.Event{TaskID: "10411", Account: account})
		failed(t, err, provider.Missing)
	}
	require.NotContains(t, strings.Join(a.asked, " "), "/ex/jira/", "nothing is asked of a site that the connection has not")
}

// A comment of Asana's has its text and its author's name only where it is asked for.
func TestLiveAsanaComment(t *testing.T) {
	events, err := of(t, "asana").Normalize(fixtures(t, "asana")["comment-added"])
	require.NoError(t, err)
	a := &api{t: t, answers: map[string]string{"/api/1.0/tasks/" + asanaTask: "asana/live/task.json", "/api/1.0/stories/1204444444444444": "asana/live/story.json"}}
	client, config := a.start()
	task, err := of(t, "asana").Live(t.Context(), client, config, "the-token", &events[0])
	require.NoError(t, err)
	require.Equal(t, "Bo Chen commented on “Rotate the signing key”: Can you take this before Friday?", events[0].Line(task))
	delete(a.answers, "/api/1.0/stories/1204444444444444")
	events, err = of(t, "asana").Normalize(fixtures(t, "asana")["comment-added"])
	require.NoError(t, err)
	task, err = of(t, "asana").Live(t.Context(), client, config, "the-token", &events[0])
	require.NoError(t, err)
	require.Equal(t, "Somebody commented on “Rotate the signing key”", events[0].Line(task))
}

func failed(t *testing.T, err error, kind provider.Kind) provider.Error {
	t.Helper()
	var e *provider.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, kind, e.Kind, e.Reason)
	require.NotContains(t, e.Reason, "the-token")
	return *e
}

func TestLiveFails(t *testing.T) {
	event := map[string]tracker.Event{"linear": {TaskID: linearTask}, "jira": {TaskID: "10411", Account: jiraSite}, "asana": {TaskID: asanaTask}}
	at := map[string]string{"linear": "/graphql", "jira": "/ex/jira/" + jiraSite + "/rest/api/3/issue/10411", "asana": "/api/1.0/tasks/" + asanaTask}
	for _, c := range []struct {
		provider, answer string
		kind             provider.Kind
		status           int
	}{
		{"linear", "linear/live/issue-not-found.json", provider.Missing, 0},
		{"linear", "linear/live/unauthenticated.json", provider.Denied, 401},
		{"linear", "401 linear/live/unauthenticated.json", provider.Denied, 401},
		{"linear", "400 linear/live/ratelimited-http400.json", provider.Limited, 0},
		{"linear", "429", provider.Limited, 429},
		{"linear", "500", provider.Unknown, 500},
		{"linear", "nothing.json", provider.Unknown, 200},
		{"jira", "401 jira/live/401-token.json", provider.Denied, 401},
		{"jira", "401 jira/live/401-scope.json", provider.Denied, 401},
		{"jira", "404 jira/live/issue-404.json", provider.Missing, 404},
		{"jira", "429", provider.Limited, 429},
		{"asana", "401 asana/live/401.json", provider.Denied, 401},
		{"asana", "403", provider.Denied, 403},
		{"asana", "404 asana/live/404.json", provider.Missing, 404},
		{"asana", "429 asana/live/429.json", provider.Limited, 429},
		{"asana", "500 asana/live/500.json", provider.Unknown, 500},
	} {
		a := &api{t: t, answers: map[string]string{"/oauth/token/accessible-resources": "jira/live/accessible-resources.json", at[c.provider]: c.answer}}
		if strings.HasPrefix(c.answer, "429") {
			a.header = http.Header{"Retry-After": {"17"}}
		}
		client, config := a.start()
		if c.provider == "jira" {
			a.header = nil
		}
		e := event[c.provider]
		_, err := of(t, c.provider).Live(t.Context(), client, config, "the-token", &e)
		got := failed(t, err, c.kind)
		require.Equal(t, c.status, got.Status, "%s %s", c.provider, c.answer)
		if a.header != nil {
			require.Equal(t, 17*time.Second, got.After)
		}
	}
}

func TestWhoami(t *testing.T) {
	for name, c := range map[string]struct {
		answers map[string]string
		want    tracker.Identity
	}{
		"linear": {map[string]string{"/graphql": "linear/live/viewer.json"},
			tracker.Identity{UserID: "b1a5e2a0-6f0e-4b6e-9a53-3f3b1b1c0a01", Name: "Ada Byron", Account: "dc844923-f9a4-40a3-825c-dea7747e57d6", AccountName: "Acme"}},
		"jira": {map[string]string{"/me": "jira/live/me.json", "/oauth/token/accessible-resources": "jira/live/accessible-resources.json"},
			tracker.Identity{UserID: "112233aa-bb11-cc22-33dd-445566abcabc", Name: "Mia Krystof", AccountName: "Site name 2, Site name 1"}},
		"asana": {map[string]string{"/api/1.0/users/me": "asana/live/users-me.json"},
			tracker.Identity{UserID: "1201111111111111", Name: "Ada Byron", Account: "1331", AccountName: "Acme"}},
	} {
		a := &api{t: t, answers: c.answers}
		client, config := a.start()
		got, err := of(t, name).Whoami(t.Context(), client, config, "the-token")
		require.NoError(t, err, name)
		require.Equal(t, c.want, got)
		_, err = of(t, name).Whoami(t.Context(), client, config, "another")
		failed(t, err, provider.Refused)
	}
}

func TestOAuth(t *testing.T) {
	for _, name := range tracker.Names() {
		o := of(t, name).OAuth()
		for _, address := range []string{o.AuthorizeURL, o.TokenURL} {
			require.True(t, strings.HasPrefix(address, "https://"), address)
		}
		require.NotEmpty(t, o.Scopes)
		moved := o.At("http://127.0.0.1:1")
		require.True(t, strings.HasPrefix(moved.TokenURL, "http://127.0.0.1:1/"), moved.TokenURL)
		require.Equal(t, o.RevokeURL == "", moved.RevokeURL == "")
		require.Equal(t, o, o.At(""))
	}
}
