package channel_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/channel"
	"github.com/agentplatform/agentplatform/pkg/provider"
)

var slackThread = json.RawMessage(`{"channel":"C111","threadTs":"1700000000.000000"}`)

func (s *slackServer) outside(t testing.TB) channel.Outside {
	return channel.Outside{Client: client(t), Config: channel.Config{APIURL: s.URL + "/api", BotUserID: "W111", TeamID: "T111"}, Secrets: channel.Secrets{Token: botToken}}
}

func TestSlackPost(t *testing.T) {
	s := newSlack(t)
	id, err := of(t, "slack").Post(t.Context(), s.outside(t), slackThread, channel.Reply{ID: "r-1", ThreadID: "SLACK-1", Body: "**Done**, <!channel> & <@U1>.\n"})
	require.NoError(t, err)
	require.Equal(t, "C111/1700000000.000000", id)
	require.Equal(t, map[string]any{
		"channel": "C111", "thread_ts": "1700000000.000000", "markdown_text": "**Done**, <\u200b!channel> & <\u200b@U1>.", "unfurl_links": false, "unfurl_media": false,
		"metadata": map[string]any{"event_type": "agentplatform_reply", "event_payload": map[string]any{"id": "r-1"}},
	}, s.last)
}

// What is longer than a post may be is one post still, which says where the whole is.
func TestSlackPostOfALongReply(t *testing.T) {
	s := newSlack(t)
	_, err := of(t, "slack").Post(t.Context(), s.outside(t), slackThread, channel.Reply{ID: "r-1", ThreadID: "SLACK-1", Body: strings.Repeat("é", 12_000)})
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("é", 12_000), s.last["markdown_text"])
	_, err = of(t, "slack").Post(t.Context(), s.outside(t), slackThread, channel.Reply{ID: "r-2", ThreadID: "SLACK-1", Body: "```\n" + strings.Repeat("é ", 12_000)})
	require.NoError(t, err)
	said := s.last["markdown_text"].(string)
	require.True(t, strings.HasSuffix(said, "é…\n```\n\n*The whole answer is in thread SLACK-1.*"), said[len(said)-80:])
	require.Greater(t, utf8.RuneCountInString(said), 11_800)
	require.Len(t, s.messages, 2)
}

func TestSlackPostFails(t *testing.T) {
	for name, c := range map[string]struct {
		status  int
		body    string
		headers []string
		kind    provider.Kind
		says    string
		after   time.Duration
	}{
		"not in the channel":    {200, `{"ok":false,"error":"not_in_channel"}`, nil, provider.Missing, "not_in_channel", 0},
		"a channel that is not": {200, `{"ok":false,"error":"channel_not_found"}`, nil, provider.Missing, "channel_not_found", 0},
		"archived":              {200, `{"ok":false,"error":"is_archived"}`, nil, provider.Missing, "is_archived", 0},
		"a revoked token":       {200, `{"ok":false,"error":"token_revoked"}`, nil, provider.Denied, "token_revoked", 0},
		"no scope":              {200, string(fixture(t, "slack/hand.api.error.missing_scope.json")), nil, provider.Denied, "missing_scope, the app needs chat:write", 0},
		"a word of no kind":     {200, string(fixture(t, "slack/api.error.json")), nil, provider.Refused, "too_many_attachments", 0},
		"never, with a time":    {200, `{"ok":false,"error":"no_text"}`, []string{"Retry-After", "30"}, provider.Refused, "no_text", 0},
		"no word":               {200, `{"ok":false,"error":"<b>xoxb-1-2-3</b>"}`, nil, provider.Refused, "Slack refuses it", 0},
		"too often":             {429, string(fixture(t, "slack/hand.api.error.ratelimited.json")), []string{"Retry-After", "30"}, provider.Limited, "429", 30 * time.Second},
		"too often, with 200":   {200, `{"ok":false,"error":"rate_limited"}`, []string{"Retry-After", "7"}, provider.Limited, "rate_limited", 7 * time.Second},
		"not now":               {200, `{"ok":false,"error":"service_unavailable"}`, nil, provider.Away, "service_unavailable", 0},
		"not now, with 503":     {503, ``, []string{"Retry-After", "5"}, provider.Away, "503", 5 * time.Second},
		"perhaps":               {200, `{"ok":false,"error":"fatal_error"}`, nil, provider.Unknown, "fatal_error", 0},
		"broken":                {500, `oops`, nil, provider.Unknown, "500", 0},
		"no JSON":               {200, `oops`, nil, provider.Unknown, "cannot be understood", 0},
		"nothing":               {200, `{}`, nil, provider.Unknown, "cannot be understood", 0},
		"no ts":                 {200, `{"ok":true}`, nil, provider.Unknown, "cannot be understood", 0},
		"a ts of another kind":  {200, `{"ok":true,"ts":7}`, nil, provider.Unknown, "cannot be understood", 0},
		"a wild ts":             {200, `{"ok":true,"ts":"../x"}`, nil, provider.Unknown, "cannot be understood", 0},
	} {
		s := newSlack(t)
		s.says(c.status, c.body, c.headers...)
		_, err := of(t, "slack").Post(t.Context(), s.outside(t), slackThread, channel.Reply{ID: "r-1", Body: "Done"})
		e := fails(t, err, c.kind, c.says)
		require.Equal(t, c.after, e.After, name)
		require.NotContains(t, e.Reason, botToken)
		require.Equal(t, 1, s.asked("POST chat.postMessage"), "asked once, and not by a GET: %s", name)
	}
	s := newSlack(t)
	o := s.outside(t)
	for _, to := range []string{``, `{}`, `null`, `{"channel":"C111"}`, `[]`} {
		_, err := of(t, "slack").Post(t.Context(), o, json.RawMessage(to), channel.Reply{ID: "r-1", Body: "Done"})
		fails(t, err, provider.Refused, "address")
	}
	o.Secrets.Token = "xoxb-other"
	_, err := of(t, "slack").Post(t.Context(), o, slackThread, channel.Reply{ID: "r-1", Body: "Done"})
	fails(t, err, provider.Denied, "invalid_auth")
	s.Close()
	o.Client = client(t) // without a connection that was open
	_, err = of(t, "slack").Post(t.Context(), o, slackThread, channel.Reply{ID: "r-1", Body: "Done"})
	fails(t, err, provider.Away, "refused the connection")
}

// A reply whose answer was lost is found by its id, in whatever page, and not taken for another, nor for somebody's who has written the id.
func TestSlackFind(t *testing.T) {
	s := newSlack(t)
	s.page = 3
	o := s.outside(t)
	find := func(id string, since int64) (string, bool) {
		at, found, err := of(t, "slack").Find(t.Context(), o, slackThread, id, time.Unix(since, 0))
		require.NoError(t, err)
		return at, found
	}
	_, found := find("r-1", 1_700_000_000)
	require.False(t, found)
	for _, id := range []string{"r-0", "r-1", "r-2", "r-3", "r-4", "r-5", "r-6", "r-7"} {
		_, err := of(t, "slack").Post(t.Context(), o, slackThread, channel.Reply{ID: id, Body: "Done"})
		require.NoError(t, err)
	}
	for _, id := range []string{"r-1", "r-7"} {
		at, found := find(id, 1_700_000_000)
		require.True(t, found)
		require.Equal(t, "C111/1700000"+"00"+id[2:]+".00000"+id[2:], at)
	}
	_, found = find("r-1", 1_700_000_005)
	require.False(t, found, "it was posted before")
	before := s.asked("GET conversations.replies")
	_, found = find("r-8", 1_700_000_000)
	require.False(t, found)
	require.Equal(t, before+3, s.asked("GET conversations.replies"), "nine messages are three pages")

	s.messages[1]["user"] = "W222"
	_, found = find("r-1", 1_700_000_000)
	require.False(t, found, "somebody else's")
	s.messages[2]["metadata"] = map[string]any{"event_type": "another", "event_payload": map[string]any{"id": "r-2"}}
	s.messages[3]["metadata"] = "r-3"
	for _, id := range []string{"r-2", "r-3", ""} {
		_, found = find(id, 1_700_000_000)
		require.False(t, found)
	}
}

// The payload of the documentation.
func TestSlackFindInAThread(t *testing.T) {
	s := newSlack(t)
	s.says(200, string(fixture(t, "slack/hand.api.conversations.replies.with-metadata.json")))
	at, found, err := of(t, "slack").Find(t.Context(), s.outside(t), slackThread, "019f0000-0000-7000-8000-000000000001", now)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, "C111/1610261700.000200", at)
}

func TestSlackFindCannotLook(t *testing.T) {
	s := newSlack(t)
	o := s.outside(t)
	find := func() error {
		_, found, err := of(t, "slack").Find(t.Context(), o, slackThread, "r-1", now)
		require.False(t, found)
		return err
	}
	for _, word := range []string{"missing_scope", "not_allowed_token_type", "no_permission", "method_not_supported_for_channel_type"} {
		s.says(200, `{"ok":false,"error":"`+word+`"}`)
		require.ErrorIs(t, find(), channel.ErrNoLook, word)
	}
	s.says(200, `{"ok":false,"error":"token_revoked"}`)
	fails(t, find(), provider.Denied, "token_revoked")
	s.says(429, ``, "Retry-After", "60")
	require.Equal(t, time.Minute, fails(t, find(), provider.Limited, "").After)
	s.says(500, ``)
	fails(t, find(), provider.Unknown, "")
	s.says(200, `{"ok":true,"messages":[],"response_metadata":{"next_cursor":"again"}}`)
	require.ErrorIs(t, find(), channel.ErrNoLook, "a thread without an end")
	o.Config.BotUserID = ""
	require.ErrorIs(t, find(), channel.ErrNoLook, "nobody knows whose words count")
	o.Config.BotUserID = "W111"
	_, _, err := of(t, "slack").Find(t.Context(), o, json.RawMessage(`{}`), "r-1", now)
	fails(t, err, provider.Refused, "address")
}

func TestSlackIdentity(t *testing.T) {
	s := newSlack(t)
	bot, err := channel.SlackIdentity(t.Context(), client(t), s.URL+"/api/", botToken)
	require.NoError(t, err)
	require.Equal(t, channel.SlackBot{UserID: "W12345678", TeamID: "T12345678"}, bot)
	_, err = channel.SlackIdentity(t.Context(), client(t), s.URL+"/api", "xoxb-other")
	fails(t, err, provider.Denied, "invalid_auth")
	for body, kind := range map[string]provider.Kind{
		`{"ok":true,"user_id":"U1","team_id":"T1"}`:                                     provider.Refused, // a person's
		`{"ok":true,"user_id":"u1 ","bot_id":"B1","team_id":"T1"}`:                      provider.Unknown,
		`{"ok":true,"user_id":"U1","bot_id":"B1"}`:                                      provider.Unknown,
		`{"ok":true,"user_id":"U1","bot_id":"B1","team_id":"T1","enterprise_id":"e/1"}`: provider.Unknown,
		`[]`: provider.Unknown,
	} {
		s.says(200, body)
		_, err = channel.SlackIdentity(t.Context(), client(t), s.URL+"/api", botToken)
		fails(t, err, kind, "")
	}
	s.says(200, `{"ok":true,"user_id":"U1","bot_id":"B1","team_id":"T1","enterprise_id":"E1","is_enterprise_install":true}`)
	bot, err = channel.SlackIdentity(t.Context(), client(t), s.URL+"/api", botToken)
	require.NoError(t, err)
	require.Equal(t, channel.SlackBot{UserID: "U1", TeamID: "T1", EnterpriseID: "E1"}, bot)
	_, err = channel.SlackIdentity(t.Context(), client(t), "http://10.0.0.1", botToken)
	fails(t, err, provider.Refused, "no address on the internet")
	_, err = channel.SlackIdentity(t.Context(), &http.Client{}, "://", botToken)
	fails(t, err, provider.Refused, "URL cannot be understood")
}
