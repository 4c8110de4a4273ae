package channel_test

import (
	"encoding/json"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/google/go-github/v79/github"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/channel"
	"github.com/agentplatform/agentplatform/pkg/thread"
)

const agentInGitHub = `{"mention": "acme-agent", "login": "acme-bot"}`

func fromGitHub(event string, body []byte) channel.Inbound {
	return inbound(body, "X-GitHub-Event", event, "X-GitHub-Delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958")
}

func readGitHub(t testing.TB, event string, body []byte) channel.Event {
	t.Helper()
	e, err := of(t, "github").Read(fromGitHub(event, body), config(t, "github", agentInGitHub))
	require.NoError(t, err)
	sound(t, e, err)
	require.Equal(t, []string{event, "72d3162e-cc78-11e3-81ab-4c9367dc0958"}, []string{e.Kind, e.ID})
	return e
}

func TestGitHubReadAComment(t *testing.T) {
	body := fixture(t, "github/hand.issue_comment.created.mention-on-pull-request.json")
	e := readGitHub(t, "issue_comment", body)
	require.Equal(t, &channel.Said{
		Key: "186853002#1", MessageKey: "186853002/issue_comment/492700400", Opens: true, Title: new("Spelling error in the README file"),
		Body:   "Codertocat (21031067): please look at this.\n\n> @acme-agent quoted, must not count\n\n```\n@acme-agent in code, must not count\n```\n`@acme-agent` nor here; mail me@acme-agent.example",
		Sender: channel.Sender{ID: "21031067", Name: "Codertocat"}, Address: json.RawMessage(`{"repository":"Codertocat/Hello-World","number":1}`),
		Metadata: map[string]any{"github": map[string]any{"repository": "Codertocat/Hello-World", "number": int64(1), "kind": "pull_request",
			"url": "https://github.com/Codertocat/Hello-World/issues/1"}},
	}, e.Said)

	renamed := readGitHub(t, "issue_comment", changed(t, "github/hand.issue_comment.created.mention-on-pull-request.json", `"full_name": "Codertocat/Hello-World"`, `"full_name": "Acme/Hello"`)).Said
	require.Equal(t, e.Said.Key, renamed.Key, "a repository keeps its id")
	require.Equal(t, `{"repository":"Acme/Hello","number":1}`, string(renamed.Address))

	form := readGitHub(t, "issue_comment", []byte("payload="+url.QueryEscape(string(body))))
	require.Equal(t, e, form, "a webhook sends a form unless it is set otherwise")
}

// A comment on a line is answered where it is: behind the first of its discussion, whichever it is itself.
func TestGitHubReadACommentOnALine(t *testing.T) {
	reply := readGitHub(t, "pull_request_review_comment", fixture(t, "github/hand.pull_request_review_comment.created.reply.json")).Said
	require.Equal(t, `{"repository":"Codertocat/Hello-World","number":2,"comment":284312630}`, string(reply.Address))
	require.Equal(t, "Codertocat (21031067): On `README.md`, line 265:\n\nplease fix this.", reply.Body)
	require.Equal(t, "186853002#2", reply.Key, "the pull request is the conversation")
	require.Equal(t, "186853002/pull_request_review_comment/284312999", reply.MessageKey)

	first := readGitHub(t, "pull_request_review_comment", changed(t, "github/pull_request_review_comment.created.json", "Maybe you", "@acme-agent maybe you", `"line": 265`, `"line": null`,
		"README.md", "a `b`\\nc.md")).Said
	require.Equal(t, `{"repository":"Codertocat/Hello-World","number":2,"comment":284312630}`, string(first.Address))
	require.Equal(t, "Codertocat (21031067): On `a 'b' c.md`:\n\nmaybe you should use more emojji on this line.", first.Body)
	require.Equal(t, "pull_request", first.Metadata["github"].(map[string]any)["kind"])
}

func TestGitHubReadWhatOpensAConversation(t *testing.T) {
	for _, c := range []struct {
		event      string
		body       []byte
		text, mine string
	}{
		{"issues", changed(t, "github/issues.opened.json", "It looks like", "@Acme-Agent, it looks like"), "it looks like you accidently spelled 'commit' with two 't's.", "issues/444500041"},
		{"issues", changed(t, "github/issues.opened.json", "Spelling error", "@acme-agent: spelling error", `"It looks like you accidently spelled 'commit' with two 't's."`, "null"),
			"@acme-agent: spelling error in the README file", "issues/444500041"},
		{"pull_request", changed(t, "github/pull_request.opened.json", "This is a", "@acme-agent This is a"), "This is a pretty simple change that we need to pull into master.",
			"pull_request/279147437"},
		{"pull_request_review", changed(t, "github/pull_request_review.submitted.json", `"body": null`, `"body": "@acme-agent"`), "[no text]", "pull_request_review/237895671"},
	} {
		said := readGitHub(t, c.event, c.body).Said
		require.NotNil(t, said, c.event)
		require.Equal(t, []string{"Codertocat (21031067): " + c.text, "186853002/" + c.mine}, []string{said.Body, said.MessageKey})
		require.True(t, said.Opens)
	}
}

func TestGitHubReadWhatIsNothingToDo(t *testing.T) {
	const mention, bot = "github/hand.issue_comment.created.mention-on-pull-request.json", "github/hand.issue_comment.created.by-bot.json"
	for name, c := range map[string]struct {
		event string
		body  []byte
	}{
		"a ping":                         {"ping", fixture(t, "github/ping.json")},
		"no mention":                     {"issue_comment", fixture(t, "github/issue_comment.created.json")},
		"an edit":                        {"issue_comment", changed(t, "github/issue_comment.edited.json", "You are", "@acme-agent You are")},
		"a deletion":                     {"issue_comment", changed(t, "github/issue_comment.deleted.json", "You are", "@acme-agent You are")},
		"an issue without a mention":     {"issues", fixture(t, "github/issues.opened.json")},
		"an assignment":                  {"issues", changed(t, "github/issues.assigned.json", "It looks", "@acme-agent It looks")},
		"a pull request":                 {"pull_request", fixture(t, "github/pull_request.opened.json")},
		"a review without a word":        {"pull_request_review", fixture(t, "github/pull_request_review.submitted.json")},
		"a comment on a line":            {"pull_request_review_comment", fixture(t, "github/pull_request_review_comment.created.json")},
		"a discussion":                   {"discussion_comment", changed(t, "github/discussion_comment.created.json", "ANSWER", "@acme-agent ANSWER")},
		"an event that there is none of": {"robots", []byte(`{"action":"created","comment":"@acme-agent"}`)},
		"no action":                      {"push", []byte(`{}`)},
		"an app":                         {"issue_comment", changed(t, bot, "Done.", "@acme-agent Done.", "<!-- agentplatform:", "<!-- ", `"author_association": "NONE"`, `"author_association": "MEMBER"`)},
		"an app in a person's name":      {"issue_comment", changed(t, mention, `"performed_via_github_app": null`, `"performed_via_github_app": {"id": 1}`)},
		"somebody in another's name":     {"issue_comment", changed(t, mention, `"sender": {"login": "Codertocat","id": 21031067`, `"sender": {"login": "Codertocat","id": 21031068`)},
		"an account that is gone":        {"issue_comment", changed(t, mention, `"user": {"login": "Codertocat","id": 21031067,"node_id": "MDQ6VXNlcjIxMDMxMDY3"`, `"user": null, "nobody": {"x": ""`)},
		"only in a quote":                {"issue_comment", changed(t, mention, "@acme-agent please", "please")},
		"what the platform has posted":   {"issue_comment", changed(t, mention, "please look", "please <!-- agentplatform:1 --> look", `"login": "Codertocat"`, `"login": "Acme-Bot"`)},
		"a stranger":                     {"issue_comment", changed(t, mention, `"author_association": "MEMBER"`, `"author_association": "NONE"`)},
		"a contributor":                  {"issue_comment", changed(t, mention, `"author_association": "MEMBER"`, `"author_association": "CONTRIBUTOR"`)},
		"somebody of no association":     {"issue_comment", changed(t, mention, `"author_association": "MEMBER"`, `"author_association": null`)},
	} {
		e := readGitHub(t, c.event, c.body)
		require.Nil(t, e.Said, name)
		require.Nil(t, e.Answer, name)
	}
}

func TestGitHubReadWhoMayAsk(t *testing.T) {
	const mention = "github/hand.issue_comment.created.mention-on-pull-request.json"
	read := func(c channel.Config, body []byte) *channel.Said {
		e, err := of(t, "github").Read(fromGitHub("issue_comment", body), c)
		require.NoError(t, err)
		return e.Said
	}
	stranger := changed(t, mention, `"author_association": "MEMBER"`, `"author_association": "NONE"`)
	require.NotNil(t, read(config(t, "github", `{"mention": "acme-agent", "allow": ["NONE"]}`), stranger))
	require.Nil(t, read(config(t, "github", `{"mention": "acme-agent", "allow": ["OWNER"]}`), fixture(t, mention)), "a member")
	require.Nil(t, read(channel.Config{Mention: "acme-agent"}, fixture(t, mention)), "nobody, as long as it is not said who may")
	require.Nil(t, read(channel.Config{Allow: []string{"MEMBER"}}, fixture(t, mention)), "nobody is mentioned by no name")

	// Whose token it is may write himself: only what has a marker is the platform's. And a marker in others' words is none.
	c := config(t, "github", `{"mention": "acme-agent", "login": "codertocat"}`)
	marked := changed(t, mention, "please look", "please <!-- agentplatform:1 --> look")
	require.NotNil(t, read(c, fixture(t, mention)))
	require.Nil(t, read(c, marked))
	require.NotNil(t, read(config(t, "github", agentInGitHub), marked))
	require.Nil(t, read(config(t, "github", `{"mention": "acme-agent"}`), marked))
}

func TestGitHubReadWhatCannotBeUnderstood(t *testing.T) {
	const path = "github/hand.issue_comment.created.mention-on-pull-request.json"
	good := fixture(t, path)
	for name, c := range map[string]struct {
		in   channel.Inbound
		says string
	}{
		"no event":           {inbound(good, "X-GitHub-Delivery", "1"), "no X-GitHub-Event"},
		"a wild event":       {inbound(good, "X-GitHub-Delivery", "1", "X-GitHub-Event", "../x"), "no X-GitHub-Event"},
		"no delivery":        {inbound(good, "X-GitHub-Event", "ping"), "no X-GitHub-Delivery"},
		"a wild delivery":    {inbound(good, "X-GitHub-Event", "ping", "X-GitHub-Delivery", "1 2"), "no X-GitHub-Delivery"},
		"nothing":            {fromGitHub("issue_comment", nil), "no delivery of GitHub's"},
		"half":               {fromGitHub("issue_comment", good[:1000]), "no delivery of GitHub's"},
		"a broken form":      {fromGitHub("issue_comment", []byte("payload=%7B%zz")), "no delivery of GitHub's"},
		"another form":       {fromGitHub("issue_comment", []byte("body=%7B%7D")), "no delivery of GitHub's"},
		"a list":             {fromGitHub("ping", []byte("[]")), "no delivery of GitHub's"},
		"another event":      {fromGitHub("pull_request_review_comment", good), "no pull_request_review_comment of GitHub's"},
		"no comment":         {fromGitHub("issue_comment", []byte(`{"action":"created"}`)), "no issue_comment of GitHub's"},
		"a comment of text":  {fromGitHub("issue_comment", []byte(`{"action":"created","comment":"x"}`)), "no delivery of GitHub's"},
		"no repository":      {fromGitHub("issue_comment", changed(t, path, `"full_name": "Codertocat/Hello-World"`, `"full_name": ""`)), "no issue_comment"},
		"a wild repository":  {fromGitHub("issue_comment", changed(t, path, `"full_name": "Codertocat/Hello-World"`, `"full_name": "Codertocat/.."`)), "no issue_comment"},
		"a wilder one":       {fromGitHub("issue_comment", changed(t, path, `"full_name": "Codertocat/Hello-World"`, `"full_name": "a/b/../../user"`)), "no issue_comment"},
		"a number below one": {fromGitHub("issue_comment", changed(t, path, `"number": 1,`, `"number": -1,`)), "no issue_comment"},
		"a wild login":       {fromGitHub("issue_comment", changed(t, path, `"login": "Codertocat"`, `"login": "a\nb"`)), "no issue_comment"},
	} {
		e, err := of(t, "github").Read(c.in, config(t, "github", agentInGitHub))
		invalid(t, err, c.says)
		sound(t, e, err)
		require.Nil(t, e.Said, name)
	}
}

func TestGitHubReadALongComment(t *testing.T) {
	said := readGitHub(t, "issue_comment", changed(t, "github/hand.issue_comment.created.mention-on-pull-request.json", "please look at this.", strings.Repeat("é\\u0000", 100_000))).Said
	require.LessOrEqual(t, len(said.Body), thread.MaxBody)
	require.Greater(t, len(said.Body), thread.MaxBody-100)
	require.True(t, strings.HasPrefix(said.Body, "Codertocat (21031067): éé") && strings.HasSuffix(said.Body, "…"))
}

// What go-github reads of an event is what is read here.
func TestGitHubReadAgreesWithGoGitHub(t *testing.T) {
	files, err := os.ReadDir("testdata/github")
	require.NoError(t, err)
	read := 0
	for _, file := range files {
		event, _, _ := strings.Cut(strings.TrimPrefix(file.Name(), "hand."), ".")
		if event == "api" || !strings.HasSuffix(file.Name(), ".json") {
			continue
		}
		body := fixture(t, "github/"+file.Name())
		theirs, err := github.ParseWebHook(event, body)
		require.NoError(t, err)
		said := readGitHub(t, event, body).Said
		if said == nil {
			continue
		}
		read++
		var at struct {
			Repository string
			Number     int
			Comment    int64
		}
		require.NoError(t, json.Unmarshal(said.Address, &at))
		switch e := theirs.(type) {
		case *github.IssueCommentEvent:
			require.Equal(t, []any{e.GetRepo().GetFullName(), e.GetIssue().GetNumber(), int64(0)}, []any{at.Repository, at.Number, at.Comment})
			require.Equal(t, e.GetComment().GetUser().GetLogin(), said.Sender.Name)
		case *github.PullRequestReviewCommentEvent:
			require.Equal(t, []any{e.GetRepo().GetFullName(), e.GetPullRequest().GetNumber(), e.GetComment().GetInReplyTo()}, []any{at.Repository, at.Number, at.Comment})
			require.Equal(t, e.GetComment().GetUser().GetLogin(), said.Sender.Name)
		default:
			t.Fatalf("%s: %T", file.Name(), theirs)
		}
	}
	require.Equal(t, 2, read)
}

func FuzzGitHubRead(f *testing.F) {
	events := []string{"issue_comment", "issues", "pull_request", "pull_request_review", "pull_request_review_comment", "ping"}
	files, err := os.ReadDir("testdata/github")
	require.NoError(f, err)
	for _, file := range files {
		for i := range events {
			f.Add(i, fixture(f, "github/"+file.Name()))
		}
	}
	c := config(f, "github", agentInGitHub)
	f.Fuzz(func(t *testing.T, event int, body []byte) {
		in := fromGitHub(events[uint(event)%uint(len(events))], body)
		e, err := of(t, "github").Read(in, c)
		sound(t, e, err)
		again, err := of(t, "github").Read(channel.Inbound{Header: in.Header, Body: channel.Redact("github", body)}, c)
		if e.Said != nil {
			require.NoError(t, err)
			require.Equal(t, e, again, "what is kept says the same")
		}
	})
}
