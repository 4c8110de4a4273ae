package integration_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-github/v79/github"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/channel"
	"github.com/agentplatform/agentplatform/pkg/integration"
	"github.com/agentplatform/agentplatform/pkg/thread"
)

// repository is GitHub's API, of whatever is commented by the account of one token.
type repository struct {
	*httptest.Server
	mutex    sync.Mutex
	comments map[string][]*github.IssueComment // by the path that lists them
	looks    int
	wrong    []string
}

func newRepository(t testing.TB) *repository {
	r := &repository{comments: map[string][]*github.IssueComment{}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *repository) ServeHTTP(out http.ResponseWriter, in *http.Request) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	out.Header().Set("Content-Type", "application/json; charset=utf-8")
	of, _, _ := strings.Cut(in.URL.Path, "/comments")
	switch {
	case in.Header.Get("Authorization") != "Bearer "+token:
		out.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(out, `{"message": "Bad credentials"}`)
	case in.URL.Path == "/user":
		fmt.Fprint(out, `{"login": "acme-bot", "id": 1, "type": "User"}`)
	case in.Method == http.MethodPost && (strings.HasSuffix(in.URL.Path, "/comments") || strings.HasSuffix(in.URL.Path, "/replies")):
		var c github.IssueComment
		if json.NewDecoder(in.Body).Decode(&c) != nil || c.GetBody() == "" {
			out.WriteHeader(http.StatusUnprocessableEntity)
			return
		}
		now := github.Timestamp{Time: time.Now()}
		c.ID, c.User, c.CreatedAt, c.UpdatedAt = new(int64(1000+len(r.comments[of]))), &github.User{Login: new("acme-bot")}, &now, &now
		c.URL = new(in.URL.Path)
		r.comments[of] = append(r.comments[of], &c)
		out.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(out).Encode(c)
	case in.Method == http.MethodGet && strings.HasSuffix(in.URL.Path, "/comments"):
		r.looks++
		since, err := time.Parse(time.RFC3339, in.URL.Query().Get("since"))
		if err != nil {
			r.wrong = append(r.wrong, in.URL.String())
		}
		_ = json.NewEncoder(out).Encode(slices.DeleteFunc(append([]*github.IssueComment{}, r.comments[of]...), func(c *github.IssueComment) bool { return c.UpdatedAt.Before(since) }))
	default:
		r.wrong = append(r.wrong, in.Method+" "+in.URL.Path)
		out.WriteHeader(http.StatusNotFound)
	}
}

// posted are the comments, as where they were posted and what they say.
func (r *repository) posted(t testing.TB) (all [][2]string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	require.Empty(t, r.wrong)
	for _, comments := range r.comments {
		for _, c := range comments {
			text, marker, marked := strings.Cut(c.GetBody(), "\n\n<!-- agentplatform:")
			require.True(t, marked && strings.HasSuffix(marker, " -->"), c.GetBody())
			all = append(all, [2]string{c.GetURL(), text})
		}
	}
	return all
}

// tellsOf is an integration with the repository.
func (w *world) tellsOf(r *repository) integration.New {
	return integration.New{Provider: integration.GitHub, Settings: integration.Settings{Name: is("Hello-World"), AgentID: is(w.AgentID),
		Config: is(`{"mention": "acme-agent", "apiUrl": "` + r.URL + `"}`), Secret: is(integration.SecretGiven{Signing: new(signing), Token: new(token)})}}
}

// hooked is a delivery as GitHub signs it, by the word of its own library.
func hooked(t testing.TB, event, id string, body []byte) channel.Inbound {
	t.Helper()
	mac := hmac.New(sha256.New, []byte(signing))
	mac.Write(body)
	h := http.Header{}
	h.Set("X-GitHub-Event", event)
	h.Set("X-GitHub-Delivery", id)
	h.Set(github.SHA256SignatureHeader, "sha256="+hex.EncodeToString(mac.Sum(nil)))
	require.NoError(t, github.ValidateSignature(h.Get(github.SHA256SignatureHeader), body, []byte(signing)))
	return channel.Inbound{Header: h.Get, Body: body, Now: time.Now()}
}

// A mention is one message of one thread, and has one comment for an answer, however often it is delivered and wherever whoever posts it dies.
func TestAMentionOnGitHub(t *testing.T) {
	const talk = "You are totally right! I'll get this fixed right away."
	for name, c := range map[string]struct {
		event, fixture string
		mention        [2]string // that is written into the fixture
		title, says    string
		metadata       string
		answeredAt     string
	}{
		"on an issue": {event: "issue_comment", fixture: "issue_comment.created", mention: [2]string{talk, "@acme-agent " + talk}, title: "Spelling error in the README file",
			says:       "Codertocat (21031067): " + talk,
			metadata:   `{"github": {"repository": "Codertocat/Hello-World", "number": 1, "kind": "issue", "url": "https://github.com/Codertocat/Hello-World/issues/1"}}`,
			answeredAt: "/repos/Codertocat/Hello-World/issues/1/comments"},
		"on a pull request": {event: "issue_comment", fixture: "hand.issue_comment.created.mention-on-pull-request", title: "Spelling error in the README file",
			says:       "Codertocat (21031067): please look at this.\n\n> @acme-agent quoted",
			metadata:   `{"github": {"repository": "Codertocat/Hello-World", "number": 1, "kind": "pull_request", "url": "https://github.com/Codertocat/Hello-World/issues/1"}}`,
			answeredAt: "/repos/Codertocat/Hello-World/issues/1/comments"},
		"on a line of a pull request": {event: "pull_request_review_comment", fixture: "hand.pull_request_review_comment.created.reply", title: "Update the README with new information.",
			says:       "Codertocat (21031067): On `README.md`, line 265:\n\nplease fix this.",
			metadata:   `{"github": {"repository": "Codertocat/Hello-World", "number": 2, "kind": "pull_request", "url": "https://github.com/Codertocat/Hello-World/pull/2"}}`,
			answeredAt: "/repos/Codertocat/Hello-World/pulls/2/comments/284312630/replies"},
	} {
		for _, dies := range []string{"reply claimed", "reply posted"} {
			t.Run(name+", "+dies, func(t *testing.T) {
				body, err := os.ReadFile("../channel/testdata/github/" + c.fixture + ".json")
				require.NoError(t, err)
				if c.mention[0] != "" {
					require.Contains(t, string(body), c.mention[0])
					body = []byte(strings.Replace(string(body), c.mention[0], c.mention[1], 1))
				}
				w, r := newWorld(t), newRepository(t)
				d := w.desk(w.create(w.tellsOf(r)))

				var first integration.Received
				for _, got := range together(5, func(int) integration.Received {
					got, err := d.receive(hooked(t, c.event, "72d3162e-cc78-11e3-81ab-4c9367dc0958", body))
					if err != nil {
						t.Error(err)
					}
					return got
				}) {
					if got.TurnID != "" {
						first = got
					}
				}
				again, err := d.receive(hooked(t, c.event, "83e4273f-cc78-11e3-81ab-4c9367dc0958", body)) // by the button, or by whoever has it from somewhere
				require.NoError(t, err)
				require.Equal(t, integration.Duplicate, again.Delivery.Outcome)
				require.Equal(t, [3]int{1, 1, 1}, w.rows())
				require.Equal(t, map[integration.Outcome]int{integration.OK: 1, integration.Duplicate: 5}, w.outcomes())
				th, err := thread.Get(t.Context(), w.db.App.In(w.TenantID), "GITHUB-1")
				require.NoError(t, err)
				require.Equal(t, []any{thread.GitHub, c.title}, []any{th.Channel, *th.Title})
				require.JSONEq(t, c.metadata, *th.Metadata)
				said := w.messages("GITHUB-1")[0]
				require.True(t, strings.HasPrefix(said.Body, c.says), said.Body)
				require.Contains(t, *said.Metadata, `"sender":{"id":"21031067","name":"Codertocat"}`)

				w.answers(first.TurnID, "It is noted.")
				task, courier := integration.ReplyTask{TenantID: w.TenantID, ThreadUUID: *first.Delivery.ThreadUUID}, w.courier()
				w.killed(task, dies)
				for range 3 {
					require.NoError(t, courier.Deliver(t.Context(), task))
					w.passes(2*time.Hour + 10*time.Minute)
				}
				require.Equal(t, [][2]string{{c.answeredAt, "It is noted."}}, r.posted(t))
				require.Equal(t, 1, r.looks, "it is looked for before it is posted again")
				require.Equal(t, []string{"posted"}, w.statuses())

				logged, err := integration.GetDelivery(t.Context(), w.db.App.In(w.TenantID), first.Delivery.ID)
				require.NoError(t, err)
				require.Less(t, len(*logged.Body), len(body)/4)
				require.NotContains(t, *logged.Body, "avatar_url")
				replayed, err := integration.Replay(t.Context(), w.db.App, logged.ID)
				require.NoError(t, err)
				require.Equal(t, []any{integration.OK, "GITHUB-1", logged.ID}, []any{replayed.Delivery.Outcome, *replayed.Delivery.ThreadID, *replayed.Delivery.ReplayOf})
				require.NotEmpty(t, replayed.TurnID)
				require.Equal(t, []string{said.Body, "It is noted.", said.Body}, w.bodies("GITHUB-1"))
				require.Equal(t, *said.Metadata, *w.messages("GITHUB-1")[2].Metadata, "and is answered in the same place")
			})
		}
	}
}
