package channel_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-github/v79/github"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/channel"
	"github.com/agentplatform/agentplatform/pkg/provider"
)

var (
	pullRequest = json.RawMessage(`{"repository":"octocat/Hello-World","number":7}`)
	codeLine    = json.RawMessage(`{"repository":"octocat/Hello-World","number":7,"comment":42}`)
)

func (s *githubServer) outside(t testing.TB) channel.Outside {
	return channel.Outside{Client: client(t), Config: channel.Config{APIURL: s.URL, Mention: "acme-agent", Login: "Acme-Bot"}, Secrets: channel.Secrets{Token: githubToken}}
}

func TestGitHubPost(t *testing.T) {
	s := newGitHub(t)
	for _, to := range []json.RawMessage{pullRequest, codeLine} {
		id, err := of(t, "github").Post(t.Context(), s.outside(t), to, channel.Reply{ID: "r-1", ThreadID: "GITHUB-1", Body: "**Done**, @ada, see `@me`.\n"})
		require.NoError(t, err)
		require.Equal(t, "1000", id)
	}
	for _, of := range []string{"issues", "pulls"} {
		require.Len(t, s.comments[of], 1)
		require.Equal(t, "**Done**, @\u200bada, see `@me`.\n\n<!-- agentplatform:r-1 -->", s.comments[of][0].GetBody())
	}
	s.says(201, string(fixture(t, "github/hand.api.issue-comment.201.json")))
	id, err := of(t, "github").Post(t.Context(), s.outside(t), pullRequest, channel.Reply{ID: "r-1", Body: "Me too"})
	require.NoError(t, err)
	require.Equal(t, "1", id)
}

// A long reply is one comment still, whose marker is hidden, and found.
func TestGitHubPostOfALongReply(t *testing.T) {
	s := newGitHub(t)
	_, err := of(t, "github").Post(t.Context(), s.outside(t), pullRequest, channel.Reply{ID: "r-1", ThreadID: "GITHUB-1", Body: "~~~~\n" + strings.Repeat("é ", 65_536)})
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(s.comments["issues"][0].GetBody(), "…\n~~~~\n\n*The whole answer is in thread GITHUB-1.*\n\n<!-- agentplatform:r-1 -->"))
	_, found, err := of(t, "github").Find(t.Context(), s.outside(t), pullRequest, "r-1", now)
	require.NoError(t, err)
	require.True(t, found)
}

// What was posted comes back as a delivery, and is nothing to do.
func TestGitHubPostIsKnownWhenItComesBack(t *testing.T) {
	s := newGitHub(t)
	_, err := of(t, "github").Post(t.Context(), s.outside(t), pullRequest, channel.Reply{ID: "r-1", Body: "Ask @acme-agent again."})
	require.NoError(t, err)
	said, err := json.Marshal(s.comments["issues"][0].GetBody())
	require.NoError(t, err)
	const path = "github/hand.issue_comment.created.mention-on-pull-request.json"
	var whole struct {
		Comment struct {
			Body json.RawMessage `json:"body"`
		} `json:"comment"`
	}
	require.NoError(t, json.Unmarshal(changed(t, path), &whole))
	back := changed(t, path, string(whole.Comment.Body), string(said), `"login": "Codertocat"`, `"login": "acme-bot"`)
	require.Nil(t, readGitHub(t, "issue_comment", back).Said)
	mine := changed(t, path, `"login": "Codertocat"`, `"login": "acme-bot"`)
	require.NotNil(t, readGitHub(t, "issue_comment", mine).Said, "whose token it is may ask")
}

func TestGitHubPostFails(t *testing.T) {
	reset := strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10)
	for name, c := range map[string]struct {
		status  int
		body    string
		headers []string
		kind    provider.Kind
		says    string
		after   [2]time.Duration
	}{
		"a token that has expired": {401, `{"message":"Bad credentials"}`, nil, provider.Denied, "401: Bad credentials", [2]time.Duration{}},
		"no permission":            {403, `{"message":"Resource not accessible by personal access token"}`, []string{"X-RateLimit-Remaining", "4999"}, provider.Denied, "not accessible", [2]time.Duration{}},
		"a locked conversation":    {403, `{"message":"Unable to create comment because issue is locked."}`, nil, provider.Denied, "locked", [2]time.Duration{}},
		"gone":                     {410, `{"message":"This issue was deleted"}`, nil, provider.Missing, "deleted", [2]time.Duration{}},
		"not there":                {404, `{"message":"Not Found"}`, nil, provider.Missing, "404", [2]time.Duration{}},
		"too long":                 {422, string(fixture(t, "github/api.error.422-too-long.json")), nil, provider.Refused, "422: Validation Failed", [2]time.Duration{}},
		"the first limit": {403, `{"message":"API rate limit exceeded for user ID 1."}`, []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", reset}, provider.Limited, "rate limit",
			[2]time.Duration{59 * time.Minute, time.Hour}},
		"the second limit":           {403, `{"message":"You have exceeded a secondary rate limit."}`, []string{"Retry-After", "90"}, provider.Limited, "secondary", [2]time.Duration{90 * time.Second, 90 * time.Second}},
		"the second, without a time": {403, `{"message":"You have exceeded a secondary rate limit."}`, []string{"X-RateLimit-Remaining", "4999"}, provider.Limited, "secondary", [2]time.Duration{time.Minute, time.Minute}},
		"the second, with 429":       {429, `{"message":"You have exceeded a secondary rate limit."}`, []string{"Retry-After", "1"}, provider.Limited, "secondary", [2]time.Duration{time.Minute, time.Minute}},
		"perhaps":                    {502, `<html>`, nil, provider.Unknown, "502", [2]time.Duration{}},
		"no JSON":                    {201, `<html>`, nil, provider.Unknown, "cannot be understood", [2]time.Duration{}},
		"no id":                      {201, `{}`, nil, provider.Unknown, "cannot be understood", [2]time.Duration{}},
	} {
		s := newGitHub(t)
		s.says(c.status, c.body, c.headers...)
		_, err := of(t, "github").Post(t.Context(), s.outside(t), pullRequest, channel.Reply{ID: "r-1", Body: "Done"})
		e := fails(t, err, c.kind, c.says)
		require.True(t, c.after[0] <= e.After && e.After <= c.after[1], "%s: %s", name, e.After)
		require.NotContains(t, e.Reason, githubToken)
		require.Equal(t, 1, s.asked(http.MethodPost), name)
	}
	s := newGitHub(t)
	for _, to := range []string{``, `{}`, `{"repository":"octocat/..","number":7}`, `{"repository":"a/b/c","number":7}`, `{"repository":"octocat/Hello-World"}`,
		`{"repository":"octocat/Hello-World","number":7,"comment":-1}`} {
		_, err := of(t, "github").Post(t.Context(), s.outside(t), json.RawMessage(to), channel.Reply{ID: "r-1", Body: "Done"})
		fails(t, err, provider.Refused, "address")
		_, _, err = of(t, "github").Find(t.Context(), s.outside(t), json.RawMessage(to), "r-1", now)
		fails(t, err, provider.Refused, "address")
	}
	require.Empty(t, s.calls)
}

// A reply whose answer was lost is found by its marker, in whatever page, if the account that the token is of has written it, and nobody has talked it into it.
func TestGitHubFind(t *testing.T) {
	for name, to := range map[string]json.RawMessage{"issues": pullRequest, "pulls": codeLine} {
		s := newGitHub(t)
		o := s.outside(t)
		find := func(id string, since int64) (string, bool) {
			at, found, err := of(t, "github").Find(t.Context(), o, to, id, time.Unix(since, 0))
			require.NoError(t, err)
			return at, found
		}
		_, found := find("r-1", 1_700_000_000)
		require.False(t, found)
		for i := range 250 {
			_, err := of(t, "github").Post(t.Context(), o, to, channel.Reply{ID: fmt.Sprintf("r-%d", i), Body: "Done. <!-- agentplatform:r-1000 -->"})
			require.NoError(t, err)
		}
		for _, i := range []int{0, 99, 100, 249} {
			at, found := find(fmt.Sprintf("r-%d", i), 1_700_000_000)
			require.True(t, found)
			require.Equal(t, strconv.Itoa(1000+i), at)
		}
		_, found = find("r-1", 1_700_000_002)
		require.False(t, found, "it was posted before")
		before := s.asked(http.MethodGet)
		_, found = find("r-1000", 1_700_000_000)
		require.False(t, found, "an agent has said so")
		require.Equal(t, before+3, s.asked(http.MethodGet))
		s.comments[name][7].User.Login = github.Ptr("somebody")
		_, found = find("r-7", 1_700_000_000)
		require.False(t, found, "somebody else's")
		s.comments[name][8].Body = github.Ptr(s.comments[name][8].GetBody() + "\r\n")
		_, found = find("r-8", 1_700_000_000)
		require.True(t, found)
	}
}

func TestGitHubFindCannotLook(t *testing.T) {
	s := newGitHub(t)
	o := s.outside(t)
	find := func() error {
		_, found, err := of(t, "github").Find(t.Context(), o, pullRequest, "r-1", now)
		require.False(t, found)
		return err
	}
	s.says(403, `{"message":"Resource not accessible by personal access token"}`)
	require.ErrorIs(t, find(), channel.ErrNoLook)
	s.says(401, `{"message":"Bad credentials"}`)
	fails(t, find(), provider.Denied, "Bad credentials")
	s.says(403, `{"message":"You have exceeded a secondary rate limit."}`)
	require.Equal(t, time.Minute, fails(t, find(), provider.Limited, "").After)
	s.says(404, `{"message":"Not Found"}`)
	fails(t, find(), provider.Missing, "")
	s.says(500, ``)
	fails(t, find(), provider.Unknown, "")
	s.says(200, "["+strings.Repeat(`{"id":1},`, 99)+`{"id":1}]`)
	require.ErrorIs(t, find(), channel.ErrNoLook, "a conversation without an end")
	o.Config.Login = ""
	require.ErrorIs(t, find(), channel.ErrNoLook, "nobody knows whose words count")
}

func TestGitHubIdentity(t *testing.T) {
	s := newGitHub(t)
	login, err := channel.GitHubIdentity(t.Context(), client(t), s.URL+"/", githubToken)
	require.NoError(t, err)
	require.Equal(t, "acme-bot", login)
	_, err = channel.GitHubIdentity(t.Context(), client(t), s.URL, "github_pat_2")
	fails(t, err, provider.Denied, "Bad credentials")
	for _, body := range []string{`{}`, `{"login":"a/b"}`, `[]`} {
		s.says(200, body)
		_, err = channel.GitHubIdentity(t.Context(), client(t), s.URL, githubToken)
		fails(t, err, provider.Unknown, "cannot be understood")
	}
}
