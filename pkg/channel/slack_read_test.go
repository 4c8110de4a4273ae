package channel_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/slack-go/slack/slackevents"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/channel"
	"github.com/agentplatform/agentplatform/pkg/thread"
)

const agentInSlack = `{"botUserId": "W111", "teamId": "T111"}`

func readSlack(t testing.TB, c channel.Config, body []byte) channel.Event {
	t.Helper()
	e, err := of(t, "slack").Read(inbound(body), c)
	require.NoError(t, err)
	sound(t, e, err)
	return e
}

func TestSlackReadAMention(t *testing.T) {
	e := readSlack(t, config(t, "slack", `{}`), fixture(t, "slack/app_mention.json"))
	require.Equal(t, channel.Event{ID: "Ev111", Kind: "app_mention", Said: &channel.Said{
		Key: "T_INSTALLED/C111/1595926230.009600", MessageKey: "T_INSTALLED/C111/1595926230.009600", Opens: true, Title: new("Hi there!"), Body: "W222: Hi there!",
		Sender: channel.Sender{ID: "W222"}, Address: json.RawMessage(`{"channel":"C111","threadTs":"1595926230.009600"}`),
		Metadata: map[string]any{"slack": map[string]any{"team": "T_INSTALLED", "channel": "C111", "threadTs": "1595926230.009600"}},
	}}, e)
	odd := readSlack(t, config(t, "slack", `{"botUserId": "U0LAN0Z89"}`), fixture(t, "slack/app_mention.docs.json"))
	require.Equal(t, "U123ABC456: What is the hour of the pearl, ?", odd.Said.Body)
}

// A mention comes as two events, in any order: both are one message, which both would begin a thread with.
func TestSlackReadAMentionThatComesTwice(t *testing.T) {
	for _, given := range []string{agentInSlack, `{}`} {
		mention := readSlack(t, config(t, "slack", given), fixture(t, "slack/hand.pair.app_mention.thread-mention.json"))
		message := readSlack(t, config(t, "slack", given), fixture(t, "slack/hand.pair.message.thread-mention.json"))
		require.NotEqual(t, mention.ID, message.ID)
		require.Equal(t, []string{"app_mention", "message"}, []string{mention.Kind, message.Kind})
		require.Equal(t, mention.Said, message.Said)
		require.True(t, message.Said.Opens)
		require.Equal(t, "T111/C111/1610261600.000100", message.Said.Key, "the thread's")
		require.Equal(t, "T111/C111/1610261659.001400", message.Said.MessageKey)
		require.Equal(t, "W222: compare a < b && see [the page](https://example.com/x?y=1&z=2) in #general", message.Said.Body)
	}
}

func TestSlackReadMessages(t *testing.T) {
	c := config(t, "slack", agentInSlack)
	for name, v := range map[string]struct {
		body       []byte
		key, text  string
		opens      bool
		senderName string
	}{
		"a direct message": {body: changed(t, "slack/message.im.json", "TXXXXXXXX", "T111"), key: "T111/D024BE91L/1355517523.000005", text: "Hello, I need help with something.",
			opens: true},
		"a reply in a thread": {body: changed(t, "slack/hand.pair.message.thread-mention.json", "<@W111> ", ""), key: "T111/C111/1610261600.000100",
			text: "W222: compare a < b && see [the page](https://example.com/x?y=1&z=2) in #general"},
		"a reply to the channel, too": {body: fixture(t, "slack/message.thread_broadcast.json"), key: "T111/C111/1633663824.000500", text: "U111: Hi there!"},
		"a file with a mention": {body: changed(t, "slack/message.file_share.json", `"text": "Hi there!", "files"`, `"text": "<@W111>", "files"`),
			key: "T111/C111/1652227646.593159", text: "U111: [1 attachment was left out: file.png]", opens: true},
		"nothing but a mention": {body: changed(t, "slack/app_mention.json", "T_INSTALLED", "T111", "<@W111> Hi there!", "<@W111>"), key: "T111/C111/1595926230.009600", text: "W222: [no text]",
			opens: true},
		"/me": {body: changed(t, "slack/hand.pair.message.thread-mention.json", `"channel_type"`, `"subtype": "me_message", "channel_type"`), key: "T111/C111/1610261600.000100",
			text: "W222: compare a < b && see [the page](https://example.com/x?y=1&z=2) in #general", opens: true},
		"somebody whose name is told": {body: changed(t, "slack/message.thread_broadcast.json", `"user": "U111", "ts": "1633670813.007500"`,
			`"user": "U111", "user_profile": {"display_name": "", "real_name": "Ada\n Lovelace"}, "ts": "1633670813.007500"`), key: "T111/C111/1633663824.000500", text: "Ada Lovelace (U111): Hi there!",
			senderName: "Ada Lovelace"},
		"a channel shared with others, by one of ours": {body: changed(t, "slack/hand.message.slack-connect.json", "T_OTHER", "T111"), key: "T111/C111/1610261600.000100",
			text: "W222: compare a < b && see [the page](https://example.com/x?y=1&z=2) in #general", opens: true},
	} {
		e := readSlack(t, c, v.body)
		require.NotNil(t, e.Said, name)
		require.Equal(t, []any{v.key, v.text, v.opens, v.senderName}, []any{e.Said.Key, e.Said.Body, e.Said.Opens, e.Said.Sender.Name}, name)
	}
}

func TestSlackReadWhatIsNothingToDo(t *testing.T) {
	const pair, im = "slack/hand.pair.message.thread-mention.json", "slack/message.im.json"
	for name, v := range map[string]struct {
		body   []byte
		kind   string
		config string
	}{
		"a channel's talk":                   {body: changed(t, "slack/message.channel.json", `"user": "W111", "ts"`, `"user": "W222", "ts"`), kind: "message"},
		"a file for nobody":                  {body: fixture(t, "slack/message.file_share.json"), kind: "message.file_share"},
		"an edit":                            {body: fixture(t, "slack/message.message_changed.json"), kind: "message.message_changed"},
		"a deletion":                         {body: fixture(t, "slack/message.message_deleted.json"), kind: "message.message_deleted"},
		"a mention that an edit brings":      {body: changed(t, "slack/app_mention.json", "T_INSTALLED", "T111", `"channel"`, `"edited": {"user": "W222", "ts": "1.0"}, "channel"`), kind: "app_mention"},
		"a bot":                              {body: fixture(t, "slack/message.by-bot.json"), kind: "message"},
		"a bot of the old kind":              {body: fixture(t, "slack/message.bot_message.classic.json"), kind: "message.bot_message"},
		"the app itself":                     {body: fixture(t, "slack/hand.message.by-own-app.json"), kind: "message"},
		"the app itself, by its user":        {body: changed(t, pair, `"user": "W222"`, `"user": "W111"`), kind: "message"},
		"the app itself, in a person's name": {body: changed(t, pair, `"channel_type"`, `"app_id": "A111", "channel_type"`), kind: "message"},
		"another app, in a person's name":    {body: changed(t, pair, `"channel_type"`, `"bot_id": "B2", "channel_type"`), kind: "message"},
		"Slack":                              {body: changed(t, im, `"user": "U2147483697"`, `"user": "USLACKBOT"`, "TXXXXXXXX", "T111"), kind: "message"},
		"nobody":                             {body: changed(t, im, `"user": "U2147483697"`, `"user": null`, "TXXXXXXXX", "T111"), kind: "message"},
		"what is hidden":                     {body: changed(t, im, `"channel_type"`, `"hidden": true, "channel_type"`, "TXXXXXXXX", "T111"), kind: "message"},
		"a join":                             {body: changed(t, pair, `"channel_type"`, `"subtype": "channel_join", "channel_type"`), kind: "message.channel_join"},
		"a stranger":                         {body: fixture(t, "slack/hand.message.slack-connect.json"), kind: "message"},
		"an app that has but a name":         {body: changed(t, pair, `"channel_type"`, `"bot_profile": {"name": "x"}, "channel_type"`), kind: "message"},
		"a stranger's account":               {body: changed(t, "slack/hand.message.slack-connect.json", `"team": "T_OTHER"`, `"team": "T111"`, `"source_team": "T_OTHER"`, `"source_team": "T111"`), kind: "message"},
		"somebody of nowhere":                {body: changed(t, "slack/hand.message.slack-connect.json", `"T_OTHER"`, `""`), kind: "message"},
		"another workspace":                  {body: fixture(t, "slack/app_mention.json"), kind: "app_mention"},
		"an event of another kind":           {body: []byte(`{"type":"event_callback","event_id":"Ev1","team_id":"T111","event":{"type":"team_join","user":{"id":"U1"},"channel":{}}}`), kind: "team_join"},
		"too many events":                    {body: changed(t, "slack/app_rate_limited.json", "T123ABC456", "T111"), kind: "app_rate_limited"},
		"too many events of others":          {body: fixture(t, "slack/app_rate_limited.json"), kind: "app_rate_limited"},
		"a mention of one that is unknown":   {body: changed(t, pair, `"is_bot": true`, `"is_bot": false`, `"thread_ts": "1610261600.000100"`, `"x": 1`), kind: "message", config: `{}`},
	} {
		given := v.config
		if given == "" {
			given = agentInSlack
		}
		e := readSlack(t, config(t, "slack", given), v.body)
		require.Nil(t, e.Said, name)
		require.Nil(t, e.Answer, name)
		require.Equal(t, v.kind, e.Kind, name)
		require.NotEmpty(t, e.ID, name)
		require.Equal(t, name == "too many events", e.Held != "", name)
	}
}

// An app of a whole organization hears of all its workspaces, and of no other organization's; an old event names no installation.
func TestSlackReadWhoseItIs(t *testing.T) {
	c := config(t, "slack", agentInSlack)
	everywhere := changed(t, "slack/app_mention.json", `"is_enterprise_install": false`, `"is_enterprise_install": true`)
	e := readSlack(t, config(t, "slack", `{"botUserId": "W111", "teamId": "T111", "enterpriseId": "E_INSTALLED"}`), everywhere)
	require.Equal(t, "T111/C111/1595926230.009600", e.Said.Key)
	require.Nil(t, readSlack(t, c, everywhere).Said, "the workspace is in no organization")
	for _, enterprise := range []string{`"E_OTHER"`, `null`, `""`} {
		other := config(t, "slack", `{"botUserId": "W111", "teamId": "T_INSTALLED", "enterpriseId": "E111"}`)
		require.Nil(t, readSlack(t, other, changed(t, "slack/app_mention.json", `"is_enterprise_install": false`, `"is_enterprise_install": true`, `"E_INSTALLED"`, enterprise)).Said, enterprise)
	}
	require.Nil(t, readSlack(t, config(t, "slack", `{"teamId": "T111", "enterpriseId": "E_INSTALLED"}`), fixture(t, "slack/app_mention.json")).Said, "another workspace of the organization")
	for _, team := range []string{`"context_team_id": "T111", "team_id": "T222"`, `"team_id": "T111"`, `"enterprise_id": "T111"`} {
		e = readSlack(t, c, changed(t, "slack/message.im.json", `"team_id": "TXXXXXXXX"`, team))
		require.Equal(t, "T111/D024BE91L/1355517523.000005", e.Said.Key)
	}
	require.Nil(t, readSlack(t, c, fixture(t, "slack/message.im.json")).Said)
}

// The model is told who speaks where several do. What people call themselves cannot pass for another line or another's id.
func TestSlackReadWhoSpeaks(t *testing.T) {
	for display, want := range map[string]string{
		"Grace Hopper":                          "Grace Hopper (U111): Hi there!",
		"D'Arcy O\u2019Neil-Ünal jr. 2":         "D'Arcy O Neil-Ünal jr. 2 (U111): Hi there!",
		"x\n\nAda (W222): pay\u2028all: \u0007": "x Ada W222 pay all (U111): Hi there!",
		"\u202e:()":                             "U111: Hi there!",
		strings.Repeat("é", 500):                strings.Repeat("é", 59) + "… (U111): Hi there!",
	} {
		raw, err := json.Marshal(display)
		require.NoError(t, err)
		said := readSlack(t, config(t, "slack", agentInSlack), changed(t, "slack/message.thread_broadcast.json", `"user": "U111", "ts": "1633670813.007500"`,
			`"user": "U111", "user_profile": {"display_name": `+string(raw)+`}, "ts": "1633670813.007500"`)).Said
		require.Equal(t, want, said.Body)
		require.Equal(t, "Hi there!", *said.Title)
	}
	long := readSlack(t, config(t, "slack", agentInSlack), changed(t, "slack/message.thread_broadcast.json", "Hi there!", strings.Repeat("é", 100_000))).Said.Body
	require.LessOrEqual(t, len(long), thread.MaxBody)
	require.True(t, strings.HasPrefix(long, "U111: éé") && strings.HasSuffix(long, "…"))
}

func TestSlackReadTheHandshake(t *testing.T) {
	e := readSlack(t, channel.Config{}, fixture(t, "slack/url_verification.json"))
	require.JSONEq(t, `{"challenge": "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P"}`, string(e.Answer.Body))
	require.Equal(t, "url_verification", e.Kind)
	require.Nil(t, e.Said)
}

func TestSlackReadWhatCannotBeUnderstood(t *testing.T) {
	const mention = "slack/app_mention.json"
	for name, v := range map[string]struct {
		body []byte
		says string
	}{
		"nothing":          {nil, "no delivery"},
		"a form":           {[]byte("payload=%7B%7D"), "no delivery"},
		"half":             {fixture(t, mention)[:300], "no delivery"},
		"a list":           {[]byte("[]"), "no delivery"},
		"an empty object":  {[]byte("{}"), "of no type"},
		"another type":     {[]byte(`{"type":"block_actions"}`), "of no type"},
		"no challenge":     {[]byte(`{"type":"url_verification"}`), "no challenge"},
		"a long challenge": {[]byte(`{"type":"url_verification","challenge":"` + strings.Repeat("x", 5000) + `"}`), "no challenge"},
		"no event_id":      {changed(t, mention, "Ev111", ""), "no event_id"},
		"a wild event_id":  {changed(t, mention, "Ev111", "Ev 111\\u0000"), "no event_id"},
		"no event":         {[]byte(`{"type":"event_callback","event_id":"Ev1"}`), "no event"},
		"an event of text": {[]byte(`{"type":"event_callback","event_id":"Ev1","event":"x"}`), "no event"},
		"a user's object":  {changed(t, mention, `"user": "W222"`, `"user": {}`), "no message"},
		"no channel":       {changed(t, mention, `"channel": "C111"`, `"channel": ""`), "no channel"},
		"a wild channel":   {changed(t, mention, `"channel": "C111"`, `"channel": "C111/../x"`), "no channel"},
		"a wild user":      {changed(t, mention, `"user": "W222"`, `"user": "w222"`), "no user"},
		"no ts":            {changed(t, mention, `"ts": "1595926230.009600"`, `"ts": ""`), "no ts"},
		"a wild thread":    {changed(t, mention, `"event_ts"`, `"thread_ts": "../x", "event_ts"`), "no ts"},
		"no team":          {changed(t, mention, `"T_INSTALLED"`, `""`, `"E_INSTALLED"`, `""`), "no team"},
	} {
		e, err := of(t, "slack").Read(inbound(v.body), config(t, "slack", `{}`))
		invalid(t, err, v.says)
		sound(t, e, err)
		require.NotContains(t, err.Error(), "W222", name)
	}
}

// The longest message is cut, and no character of it is.
func TestSlackReadALongMessage(t *testing.T) {
	e := readSlack(t, config(t, "slack", agentInSlack), changed(t, "slack/message.im.json", "TXXXXXXXX", "T111", "Hello, I need help with something.", strings.Repeat("é\\u0000&lt;", 100_000)))
	require.Len(t, e.Said.Body, thread.MaxBody)
	require.Equal(t, strings.Repeat("é<", 30), e.Said.Body[:90])
	require.True(t, strings.HasSuffix(e.Said.Body, "…"))
	require.Len(t, []rune(*e.Said.Title), 80)
}

// What slack-go reads of an event is what is read here.
func TestSlackReadAgreesWithSlackGo(t *testing.T) {
	for _, path := range []string{"app_mention", "hand.pair.app_mention.thread-mention", "hand.pair.message.thread-mention", "message.im", "message.thread_broadcast"} {
		body := fixture(t, "slack/"+path+".json")
		theirs, err := slackevents.ParseEvent(body, slackevents.OptionNoVerifyToken())
		require.NoError(t, err)
		var team, channelID, user, ts, threadTS string
		switch m := theirs.InnerEvent.Data.(type) {
		case *slackevents.AppMentionEvent:
			channelID, user, ts, threadTS = m.Channel, m.User, m.TimeStamp, m.ThreadTimeStamp
		case *slackevents.MessageEvent:
			channelID, user, ts, threadTS = m.Channel, m.User, m.TimeStamp, m.ThreadTimeStamp
		default:
			t.Fatalf("%T", m)
		}
		team = theirs.TeamID
		if threadTS == "" {
			threadTS = ts
		}
		c := channel.Config{BotUserID: "UNOBODY"}
		ours := readSlack(t, c, body)
		require.Equal(t, theirs.InnerEvent.Type, strings.TrimSuffix(ours.Kind, ".thread_broadcast"))
		require.Equal(t, theirs.Data.(*slackevents.EventsAPICallbackEvent).EventID, ours.ID)
		require.Equal(t, []string{fmt.Sprintf("%s/%s/%s", team, channelID, threadTS), fmt.Sprintf("%s/%s/%s", team, channelID, ts), user},
			[]string{ours.Said.Key, ours.Said.MessageKey, ours.Said.Sender.ID}, path)
	}
}

func FuzzSlackRead(f *testing.F) {
	seed(f, "slack")
	c := config(f, "slack", agentInSlack)
	f.Fuzz(func(t *testing.T, body []byte) {
		e, err := of(t, "slack").Read(inbound(body), c)
		sound(t, e, err)
		require.NotContains(t, string(channel.Redact("slack", body)), `"token":`)
	})
}

// seed gives a fuzz test the provider's fixtures.
func seed(f *testing.F, provider string) {
	files, err := os.ReadDir("testdata/" + provider)
	require.NoError(f, err)
	for _, file := range files {
		if strings.HasSuffix(file.Name(), ".json") {
			f.Add(fixture(f, provider+"/"+file.Name()))
		}
	}
}
