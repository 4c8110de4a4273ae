package integration_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/slack-go/slack/slackevents"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/channel"
	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/integration"
	"github.com/agentplatform/agentplatform/pkg/thread"
)

// channelDesk takes in what happens in the channels of a Slack workspace.
type channelDesk struct{ *desk }

func newChannelDesk(t testing.TB) channelDesk {
	w := newWorld(t)
	return channelDesk{w.desk(w.create(w.slack(newWorkspace(t))))}
}

// sent is a body as Slack signs and delivers it.
func (d channelDesk) sent(body any) (integration.Received, error) {
	d.t.Helper()
	raw, err := json.Marshal(body)
	require.NoError(d.t, err)
	at := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, []byte(signing))
	mac.Write([]byte("v0:" + at + ":" + string(raw)))
	h := http.Header{"X-Slack-Request-Timestamp": {at}, "X-Slack-Signature": {"v0=" + hex.EncodeToString(mac.Sum(nil))}}
	return d.receive(channel.Inbound{Header: h.Get, Body: raw, Now: time.Now()})
}

// message is one that the app hears, below another unless root is "".
func (d channelDesk) message(n int, ts, root, text string, where map[string]any) (integration.Received, error) {
	d.t.Helper()
	message := map[string]any{"type": "message", "user": "W222", "team": "T0001", "ts": ts, "text": text}
	if root != "" {
		message["thread_ts"] = root
	}
	maps.Copy(message, where)
	return d.sent(map[string]any{"type": "event_callback", "event_id": fmt.Sprint("Ev", n), "team_id": "T0001", "api_app_id": "A111", "event": message,
		"authorizations": []any{map[string]any{"team_id": "T0001", "user_id": "U0BOT", "is_bot": true}}})
}

// hear is a message of a channel that the app is in.
func (d channelDesk) hear(n int, ts, root, text string) (integration.Received, error) {
	d.t.Helper()
	return d.message(n, ts, root, text, map[string]any{"channel_type": "channel", "channel": "C111"})
}

// direct is a message to the app alone.
func (d channelDesk) direct(n int, ts, root, text string) integration.Received {
	d.t.Helper()
	got, err := d.message(n, ts, root, text, map[string]any{"channel_type": "im", "channel": "D111"})
	require.NoError(d.t, err)
	return got
}

func (w *world) bodies(threadID string) (all []string) {
	w.t.Helper()
	for _, m := range w.messages(threadID) {
		all = append(all, m.Body)
	}
	return all
}

// Each direct message begins a conversation, which goes on in the Slack thread below it, and is answered there.
func TestDirectMessages(t *testing.T) {
	w, r := newWorld(t), newRoom(t)
	d, courier := channelDesk{w.desk(w.create(w.slack(&workspace{Server: r.Server})))}, w.courier()
	answered := func(got integration.Received, body string) {
		t.Helper()
		w.answers(got.TurnID, body)
		for range 2 {
			require.NoError(t, courier.Deliver(t.Context(), integration.ReplyTask{TenantID: w.TenantID, ThreadUUID: *got.Delivery.ThreadUUID}))
		}
	}
	first := d.direct(1, "1700000001.000100", "", "Where is it?")
	require.Equal(t, "SLACK-1", *first.Delivery.ThreadID)
	require.Equal(t, integration.Duplicate, d.direct(1, "1700000001.000100", "", "Where is it?").Delivery.Outcome)
	th, err := thread.Get(t.Context(), w.db.App.In(w.TenantID), "SLACK-1")
	require.NoError(t, err)
	require.Equal(t, []any{thread.Slack, "Where is it?"}, []any{th.Channel, *th.Title})
	require.JSONEq(t, `{"slack": {"team": "T0001", "channel": "D111", "threadTs": "1700000001.000100"}}`, *th.Metadata)
	answered(first, "In Berlin.")

	next := d.direct(2, "1700000002.000100", "", "And the other?")
	require.Equal(t, "SLACK-2", *next.Delivery.ThreadID)
	below := d.direct(3, "1700000003.000100", "1700000001.000100", "Since when?")
	require.Equal(t, "SLACK-1", *below.Delivery.ThreadID)
	answered(below, "Since Monday.")
	answered(next, "In Rome.")

	require.Equal(t, []string{"Where is it?", "In Berlin.", "Since when?", "Since Monday."}, w.bodies("SLACK-1"), "everybody knows who speaks")
	require.Equal(t, []string{"And the other?", "In Rome."}, w.bodies("SLACK-2"))
	var posts [][3]string
	for _, raw := range r.posted {
		var p struct {
			Channel string
			Root    string `json:"thread_ts"`
			Text    string `json:"markdown_text"`
		}
		require.NoError(t, json.Unmarshal(raw, &p))
		posts = append(posts, [3]string{p.Channel, p.Root, p.Text})
	}
	require.Equal(t, [][3]string{{"D111", "1700000001.000100", "In Berlin."}, {"D111", "1700000001.000100", "Since Monday."}, {"D111", "1700000002.000100", "In Rome."}}, posts)
	require.Equal(t, []string{"posted", "posted", "posted"}, w.statuses())
}

// What is said on in a conversation before its beginning could be taken in is nobody's yet, and does not come again.
func TestWhatIsSaidBeforeTheMentionIsTakenIn(t *testing.T) {
	d := newChannelDesk(t)
	const root = "1700000001.000100"
	mention := func() (integration.Received, error) { return d.hear(1, root, "", "<@U0BOT> Where is it?") }
	d.exec(`alter table integration_threads add constraint broken check (false)`)
	_, err := mention()
	require.Equal(t, fault.InternalError, fault.From(err).Type, "Slack tries again later")
	early, err := d.hear(2, "1700000001.000200", root, "The red one.")
	require.NoError(t, err)
	require.Equal(t, integration.OK, early.Delivery.Outcome)
	require.Empty(t, early.Delivery.ID+early.TurnID)
	d.exec(`alter table integration_threads drop constraint broken`)

	got, err := mention()
	require.NoError(t, err)
	require.NotEmpty(t, got.TurnID)
	require.Equal(t, []string{"W222: Where is it?"}, d.bodies("SLACK-1"))
	_, err = d.hear(3, "1700000001.000300", root, "Hello?")
	require.NoError(t, err)
	require.Equal(t, []string{"W222: Where is it?", "W222: Hello?"}, d.bodies("SLACK-1"))
	require.Equal(t, map[integration.Outcome]int{integration.OK: 2, integration.Failed: 1}, d.outcomes())
	require.Equal(t, 1, query[int](d.world, `select count(*) from threads`))
}

// What was said later and comes first is taken in first: nothing waits for what may never come.
func TestMessagesInTheOrderOfTheirArrival(t *testing.T) {
	d := newChannelDesk(t)
	const root = "1700000001.000100"
	for i, m := range [][2]string{{root, "<@U0BOT> Where is it?"}, {"1700000001.000300", "third"}, {"1700000001.000200", "second"}} {
		below := root
		if m[0] == root {
			below = ""
		}
		got, err := d.hear(i, m[0], below, m[1])
		require.NoError(t, err)
		require.Equal(t, []any{integration.OK, "SLACK-1"}, []any{got.Delivery.Outcome, *got.Delivery.ThreadID})
	}
	require.Equal(t, []string{"W222: Where is it?", "W222: third", "W222: second"}, d.bodies("SLACK-1"))
	require.Equal(t, map[integration.Outcome]int{integration.OK: 3}, d.outcomes())
}

// That Slack holds events back is in the log, whatever else is refused, and costs the integration nothing.
func TestSlackHoldsEventsBack(t *testing.T) {
	d := newChannelDesk(t)
	d.exec(`update integrations set rate_limit = 1`)
	held := func(team string, minute int) (integration.Received, error) {
		return d.sent(slackevents.EventsAPIAppRateLimited{Type: slackevents.AppRateLimited, Token: "verification-token", TeamID: team, APIAppID: "A111", MinuteRateLimited: minute})
	}
	other, err := held("T0002", 1518467820)
	require.NoError(t, err)
	require.Empty(t, other.Delivery.ID)
	require.Empty(t, d.outcomes(), "it is of another workspace")
	for range 100 {
		_, err := d.receive(signed("wrong", "1", time.Now(), nil))
		require.Equal(t, integration.ErrSignature, err)
	}
	for i := range 100 {
		got, err := held("T0001", 1518467820+60*i)
		require.NoError(t, err)
		require.Equal(t, integration.RateLimited, got.Delivery.Outcome)
		require.Equal(t, i < 60, got.Delivery.ID != "")
		require.Empty(t, got.TurnID+got.Refusal)
		require.Zero(t, got.RetryAfter)
		if i == 0 {
			logged := d.newest()
			require.Equal(t, []any{integration.RateLimited, "app_rate_limited", "app_rate_limited-1518467820", "Slack has held events back: there were more than it delivers to an app"},
				[]any{logged.Outcome, *logged.Event, *logged.ProviderID, *logged.Error})
			require.Nil(t, logged.Body)
		}
	}
	require.Equal(t, map[integration.Outcome]int{integration.Unverified: 60, integration.RateLimited: 60}, d.outcomes())
	got, err := d.hear(1, "1700000001.000100", "", "<@U0BOT> Where is it?")
	require.NoError(t, err)
	require.NotEmpty(t, got.TurnID)
}
