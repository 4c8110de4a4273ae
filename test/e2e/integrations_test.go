package e2e

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	slackgo "github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
	"github.com/stretchr/testify/require"
)

// mac is the HMAC-SHA256 that senders sign with, in hexadecimal digits.
func mac(secret, signed string) string {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte(signed))
	return hex.EncodeToString(h.Sum(nil))
}

// slackPost is what was posted to Slack's API.
type slackPost struct {
	Channel  string                `json:"channel"`
	ThreadTS string                `json:"thread_ts"`
	Text     string                `json:"markdown_text"`
	Metadata slackgo.SlackMetadata `json:"metadata"`
}

// slack is a workspace with a bot, and its API.
type slack struct {
	*httptest.Server
	t              *testing.T
	signing, token string

	mutex sync.Mutex
	posts []slackPost
	wrong []string
}

func newSlack(t *testing.T) *slack {
	s := &slack{t: t, signing: rand.Text(), token: "xoxb-" + rand.Text()}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *slack) serve(w http.ResponseWriter, r *http.Request) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	switch {
	case r.Header.Get("Authorization") != "Bearer "+s.token:
		fmt.Fprint(w, `{"ok":false,"error":"invalid_auth"}`)
	case r.URL.Path == "/api/auth.test":
		fmt.Fprint(w, `{"ok":true,"team":"Acme","user":"ada","team_id":"T111","user_id":"W111","bot_id":"B111"}`)
	case r.URL.Path == "/api/chat.postMessage":
		var p slackPost
		if err := json.NewDecoder(r.Body).Decode(&p); err != nil {
			s.wrong = append(s.wrong, err.Error())
		}
		s.posts = append(s.posts, p)
		fmt.Fprintf(w, `{"ok":true,"channel":%q,"ts":"%d.000100","message":{}}`, p.Channel, time.Now().Unix())
	default:
		s.wrong = append(s.wrong, r.URL.Path)
		fmt.Fprint(w, `{"ok":false,"error":"unknown_method"}`)
	}
}

// posted waits until so many posts are there.
func (s *slack) posted(n int) (all []slackPost) {
	s.t.Helper()
	require.NoError(s.t, until(func() (bool, error) {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		all = slices.Clone(s.posts)
		return len(all) >= n, nil
	}))
	require.Len(s.t, all, n)
	require.Empty(s.t, s.wrong)
	return all
}

// signed are the headers of a delivery of Slack's, as slack-go would take them.
func (s *slack) signed(body string) []string {
	s.t.Helper()
	at := strconv.FormatInt(time.Now().Unix(), 10)
	h := http.Header{"X-Slack-Request-Timestamp": {at}, "X-Slack-Signature": {"v0=" + mac(s.signing, "v0:"+at+":"+body)}}
	judge, err := slackgo.NewSecretsVerifier(h, s.signing)
	require.NoError(s.t, err)
	_, err = judge.Write([]byte(body))
	require.NoError(s.t, err)
	require.NoError(s.t, judge.Ensure())
	return []string{"X-Slack-Request-Timestamp: " + h.Get("X-Slack-Request-Timestamp"), "X-Slack-Signature: " + h.Get("X-Slack-Signature")}
}

// mention is one in channel C111, and heard the message that comes with it, or on its own below another: as slack-go has the events.
func mention(ts, text string) slackevents.AppMentionEvent {
	return slackevents.AppMentionEvent{Type: string(slackevents.AppMention), User: "W222", Text: text, TimeStamp: ts, EventTimeStamp: ts, Channel: "C111"}
}

func heard(ts, root, text string) slackevents.MessageEvent {
	return slackevents.MessageEvent{Type: string(slackevents.Message), User: "W222", Text: text, TimeStamp: ts, EventTimeStamp: ts, ThreadTimeStamp: root, Channel: "C111",
		ChannelType: slackevents.ChannelTypeChannel}
}

// event is a delivery of an event, which slack-go makes, and understands.
func (s *slack) event(id string, inner any) string {
	s.t.Helper()
	raw, err := json.Marshal(inner)
	require.NoError(s.t, err)
	body, err := json.Marshal(slackevents.EventsAPICallbackEvent{Type: slackevents.CallbackEvent, Token: "verification-token", TeamID: "T111", APIAppID: "A111", InnerEvent: new(json.RawMessage(raw)),
		EventID: id, EventTime: int(time.Now().Unix()), Authorizations: []slackgo.EventAuthorization{{TeamID: "T111", UserID: "W111", IsBot: true}}})
	require.NoError(s.t, err)
	_, err = slackevents.ParseEvent(body, slackevents.OptionVerifyToken(&slackevents.TokenComparator{VerificationToken: "verification-token"}))
	require.NoError(s.t, err)
	return string(body)
}

// outcomes are those of an integration's deliveries, and how often each is there.
func (u *user) outcomes(t testing.TB, integration string) map[string]int {
	t.Helper()
	a := u.query(t, `query ($id: ID!) { listDeliveries(filter: {integrationId: $id}, limit: 100) { items { outcome } } }`, vars{"id": integration})
	var items []struct{ Outcome string }
	require.NoError(t, json.Unmarshal([]byte(a.get("listDeliveries.items")), &items))
	counts := map[string]int{}
	for _, d := range items {
		counts[d.Outcome]++
	}
	return counts
}

// TestSlackIsAnsweredOnce: a mention is one message of one thread, and has one answer, however often and by however many events Slack tells of it at once;
// what is said on in the Slack thread goes on in it.
func TestSlackIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	p := sharedPlatform(t)
	alice, api := p.as(t, "alice"), newSlack(t)
	agent := alice.query(t, make_, vars{"input": vars{"name": "In Slack"}}).get("createAgent.id")
	config := fmt.Sprintf(`{"apiUrl":%q}`, api.URL+"/api")
	const create = `mutation ($input: CreateIntegrationInput!) { createIntegration(input: $input) { id url hasSecret config } }`
	input := vars{"name": "Slack " + rand.Text(), "provider": "slack", "agentId": agent, "config": config, "secret": vars{"signing": api.signing, "token": "xoxb-wrong"}}
	refused, err := alice.ask(create, vars{"input": input})
	require.NoError(t, err)
	require.Equal(t, "400 ValidationError secret.token cannot be used: Slack refuses it: invalid_auth", refused.problem())
	input["secret"] = vars{"signing": api.signing, "token": api.token}
	made := alice.query(t, create, vars{"input": input})
	id, path := made.get("createIntegration.id"), made.get("createIntegration.url")
	require.Equal(t, "true", made.get("createIntegration.hasSecret"))
	require.JSONEq(t, fmt.Sprintf(`{"apiUrl":%q,"botUserId":"W111","teamId":"T111"}`, api.URL+"/api"), made.get("createIntegration.config"))
	require.NotContains(t, made.Raw, api.token)
	send := func(body string, headers ...string) (restAnswer, error) {
		return p.rest(t, http.MethodPost, path, "", body, headers...)
	}

	challenge := `{"token":"verification-token","challenge":"3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P","type":"url_verification"}`
	shaken, err := send(challenge, api.signed(challenge)...)
	require.NoError(t, err)
	require.Equal(t, "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P", shaken.get("challenge"), "%s", shaken.body)

	const times = 5
	root := fmt.Sprintf("%d.000100", time.Now().Unix())
	const said = "<@W111> please:\n/say It is noted."
	events := []string{api.event("Ev1", mention(root, said)), api.event("Ev2", heard(root, "", said))}
	answers, errs := make([]restAnswer, 2*times), make([]error, 2*times)
	var all sync.WaitGroup
	for i := range answers {
		headers := api.signed(events[i%2])
		if i > 1 {
			headers = append(headers, "X-Slack-Retry-Num: "+strconv.Itoa(i/2), "X-Slack-Retry-Reason: http_timeout")
		}
		all.Go(func() { answers[i], errs[i] = send(events[i%2], headers...) })
	}
	all.Wait()
	var thread string
	for i, a := range answers {
		require.NoError(t, errs[i])
		require.Equal(t, http.StatusOK, a.status, "%s", a.body)
		if a.get("outcome") == "ok" {
			thread = a.get("thread_id")
		}
	}
	require.Regexp(t, `^SLACK-[0-9]+$`, thread)
	require.Equal(t, map[string]int{"ok": 2, "duplicate": 2*times - 1}, alice.outcomes(t, id), "the handshake and one of the copies")

	post := api.posted(1)[0]
	require.Equal(t, "It is noted.", post.Text)
	require.Equal(t, [2]string{"C111", root}, [2]string{post.Channel, post.ThreadTS})
	require.NotEmpty(t, post.Metadata.EventPayload["id"], "by which it is found, if nobody knows whether it was posted")

	next := api.event("Ev3", heard(root[:len(root)-3]+"200", root, "And then?\n/say It goes on."))
	for _, want := range []string{"ok", "duplicate"} {
		a, err := send(next, api.signed(next)...)
		require.NoError(t, err)
		require.Equal(t, want, a.get("outcome"), "%s", a.body)
	}
	require.Equal(t, "It goes on.", api.posted(2)[1].Text)
	var bodies []string
	for _, m := range alice.messages(t, thread) {
		bodies = append(bodies, m.Role+": "+m.Body)
	}
	require.Equal(t, []string{"user: W222: please:\n/say It is noted.", "assistant: It is noted.", "user: W222: And then?\n/say It goes on.", "assistant: It goes on."}, bodies)
	a := alice.query(t, `query ($id: ID!) { getThread(id: $id) { channel agentId metadata messages(limit: 1) { items { metadata } } } }`, vars{"id": thread})
	require.Equal(t, "SLACK", a.get("getThread.channel"))
	require.JSONEq(t, `{"slack":{"team":"T111","channel":"C111","threadTs":"`+root+`"}}`, a.get("getThread.metadata"))
	require.Contains(t, a.get("getThread.messages.items.0.metadata"), `"sender":{"id":"W222"`)

	unsigned, err := send(next)
	require.NoError(t, err)
	require.Equal(t, "401 Unauthorized no integration has this id and signature", unsigned.problem())
	changed, err := send(strings.Replace(next, "It goes on.", "It does not.", 1), api.signed(next)...)
	require.NoError(t, err)
	require.Equal(t, http.StatusUnauthorized, changed.status)
	require.Equal(t, map[string]int{"ok": 3, "duplicate": 2 * times, "unverified": 2}, alice.outcomes(t, id))
	api.posted(2)
}
