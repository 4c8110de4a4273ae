package channel_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/channel"
)

func TestCheck(t *testing.T) {
	for _, c := range []struct{ provider, given, stored string }{
		{"slack", `{}`, `{}`},
		{"slack", ` { "botUserId" : "U1", "teamId": "T_1", "enterpriseId": "E1" } `, `{"botUserId":"U1","teamId":"T_1","enterpriseId":"E1"}`},
		{"slack", `{"apiUrl": "https://slack.com/api/"}`, `{}`},
		{"slack", `{"apiUrl": "http://127.0.0.1:8080/api/"}`, `{"apiUrl":"http://127.0.0.1:8080/api"}`},
		{"github", `{"mention": "ada"}`, `{"mention":"ada","allow":["OWNER","MEMBER","COLLABORATOR"]}`},
		{"github", `{"mention": "ada-agent_acme", "allow": ["CONTRIBUTOR", "OWNER"], "login": "ada[bot]", "apiUrl": "https://github.example.com/api/v3"}`,
			`{"apiUrl":"https://github.example.com/api/v3","mention":"ada-agent_acme","allow":["CONTRIBUTOR","OWNER"],"login":"ada[bot]"}`},
		{"github", `{"mention": "ada", "apiUrl": "https://api.github.com"}`, `{"mention":"ada","allow":["OWNER","MEMBER","COLLABORATOR"]}`},
		{"generic", `{}`, `{}`},
		{"generic", `{"replyUrl": "https://example.com/replies?x=1"}`, `{"replyUrl":"https://example.com/replies?x=1"}`},
	} {
		stored, err := channel.Check(c.provider, json.RawMessage(c.given))
		require.NoError(t, err, c.given)
		require.JSONEq(t, c.stored, string(stored))
		again, err := channel.Check(c.provider, stored)
		require.NoError(t, err)
		require.Equal(t, string(stored), string(again), "what is shown can be given again")
	}
}

func TestCheckRefuses(t *testing.T) {
	for _, c := range []struct{ provider, given, says string }{
		{"slack", ``, "config must be a JSON object"},
		{"slack", `null`, "config must be a JSON object"},
		{"slack", `[]`, "config must be a JSON object"},
		{"slack", `{"token": "x"}`, `config: unknown field "token"`},
		{"slack", `{"botUserId": 1}`, "config: "},
		{"slack", `{"botUserId": "u1"}`, "config.botUserId must be an id"},
		{"slack", `{"teamId": "T/1"}`, "config.teamId must be an id"},
		{"slack", `{"enterpriseId": "E/1"}`, "config.enterpriseId must be an id"},
		{"slack", `{"mention": "ada"}`, "config.mention is not for provider slack"},
		{"slack", `{"replyUrl": "https://example.com"}`, "config.replyUrl is not for provider slack"},
		{"slack", `{"apiUrl": "http://example.com"}`, "config.apiUrl must be https"},
		{"slack", `{"apiUrl": "https://example.com?x"}`, "config.apiUrl must not hold a query"},
		{"slack", `{"apiUrl": "https://u:p@example.com"}`, "config.apiUrl must not hold a user name"},
		{"slack", `{"apiUrl": "https://example.com#x"}`, "config.apiUrl must not hold a fragment"},
		{"slack", `{"apiUrl": "example.com"}`, "config.apiUrl must be an absolute URL"},
		{"github", `{}`, "config.mention is required"},
		{"github", `{"mention": "@ada"}`, "config.mention must be a name"},
		{"github", `{"mention": "ada-"}`, "config.mention must be a name"},
		{"github", `{"mention": "ada b"}`, "config.mention must be a name"},
		{"github", `{"mention": "` + strings.Repeat("a", 64) + `"}`, "config.mention must be a name"},
		{"github", `{"mention": "ada", "login": "a/b"}`, "config.login must be a name"},
		{"github", `{"mention": "ada", "allow": []}`, "config.allow must name whoever"},
		{"github", `{"mention": "ada", "allow": ["owner"]}`, "config.allow must hold"},
		{"github", `{"mention": "ada", "allow": ["OWNER", "OWNER"]}`, "config.allow must hold"},
		{"github", `{"mention": "ada", "allow": ["MANNEQUIN"]}`, "config.allow must hold"},
		{"github", `{"mention": "ada", "botUserId": "U1"}`, "config.botUserId is not for provider github"},
		{"generic", `{"apiUrl": "https://example.com"}`, "config.apiUrl is not for provider generic"},
		{"generic", `{"replyUrl": "ftp://example.com"}`, "config.replyUrl must be https"},
		{"email", `{}`, "provider email is no channel"},
		{"", `{}`, "is no channel"},
	} {
		_, err := channel.Check(c.provider, json.RawMessage(c.given))
		invalid(t, err, c.says)
	}
}

// What may be kept of a delivery says the same when it is read again, and has no secret of it.
func TestRedact(t *testing.T) {
	const secret = "verification-token"
	kept := channel.Redact("slack", changed(t, "slack/hand.pair.message.thread-mention.json", `"channel_type"`,
		`"assistant_thread": {"action_token": "verification-token"}, "list": [{"response_url": "verification-token", "big": 12345678901234567890}], "channel_type"`))
	require.NotContains(t, string(kept), secret)
	require.Contains(t, string(kept), "a &lt; b")
	require.Contains(t, string(kept), "12345678901234567890")
	require.Equal(t, readSlack(t, config(t, "slack", agentInSlack), fixture(t, "slack/hand.pair.message.thread-mention.json")), readSlack(t, config(t, "slack", agentInSlack), kept))
	for _, body := range []string{"", "token=verification-token", `{"token":"x"} {"token":"x"}`, `{"token":`} {
		require.Nil(t, channel.Redact("slack", []byte(body)))
		require.Nil(t, channel.Redact("github", []byte(body)))
	}

	whole := fixture(t, "github/hand.pull_request_review_comment.created.reply.json")
	kept = channel.Redact("github", whole)
	require.Less(t, len(kept), 2000, "of %d", len(whole))
	require.Equal(t, readGitHub(t, "pull_request_review_comment", whole), readGitHub(t, "pull_request_review_comment", kept))
	require.Equal(t, kept, channel.Redact("github", kept))

	require.Equal(t, []byte(`{"message": "x"}`), channel.Redact("generic", []byte(`{"message": "x"}`)))
}
