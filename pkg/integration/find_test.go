package integration_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/channel"
	"github.com/agentplatform/agentplatform/pkg/integration"
)

// room is a workspace that keeps what is posted there, and can be asked for it.
type room struct {
	*httptest.Server
	mutex  sync.Mutex
	posted []json.RawMessage
	looks  int
	post   func(out http.ResponseWriter) bool // how a post is answered, once it is kept; false: as Slack does
	look   func(out http.ResponseWriter) bool // likewise of a question
}

func newRoom(t testing.TB) *room {
	r := &room{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		r.mutex.Lock()
		defer r.mutex.Unlock()
		answer := map[string]any{"ok": true, "user_id": "U0BOT", "bot_id": "B0001", "team_id": "T0001"}
		switch in.URL.Path {
		case "/api/chat.postMessage":
			var m map[string]any
			if json.NewDecoder(in.Body).Decode(&m) != nil {
				out.WriteHeader(http.StatusBadRequest)
				return
			}
			ts := fmt.Sprintf("17000000%02d.000100", len(r.posted))
			m["user"], m["ts"] = "U0BOT", ts
			kept, _ := json.Marshal(m)
			r.posted = append(r.posted, kept)
			answer["ts"] = ts
			if r.post != nil && r.post(out) {
				return
			}
		case "/api/conversations.replies":
			r.looks++
			answer["messages"] = r.posted
			if r.look != nil && r.look(out) {
				return
			}
		}
		_ = json.NewEncoder(out).Encode(answer)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *room) counts() (posted, looks int) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return len(r.posted), r.looks
}

// spoken is a mention that was taken in, and answered by the agent.
func (w *world) spoken(r *room) integration.ReplyTask {
	w.t.Helper()
	i := w.create(w.slack(&workspace{Server: r.Server}))
	d := integration.Arrived(w.TenantID, integration.Slack, nil)
	d.IntegrationID, d.ProviderID = &i.ID, new("Ev1")
	got, err := integration.Take(w.t.Context(), w.db.App, integration.Taking{Integration: i, Delivery: d, Said: channel.Said{Key: "T0001/C1/1.1", MessageKey: "C1/1.1", Opens: true,
		Body: "Hello", Address: json.RawMessage(`{"channel": "C1", "threadTs": "1700000000.000001"}`)}})
	require.NoError(w.t, err)
	require.Equal(w.t, "SLACK-1", *got.Delivery.ThreadID)
	w.answers(got.TurnID, "Hi.")
	return integration.ReplyTask{TenantID: w.TenantID, ThreadUUID: *got.Delivery.ThreadUUID}
}

// What may have been posted is looked for, and posted once, whatever happened.
func TestAReplyIsLookedForBeforeItIsPostedAgain(t *testing.T) {
	status := func(code int) func(out http.ResponseWriter) bool {
		return func(out http.ResponseWriter) bool { out.WriteHeader(code); return true }
	}
	for name, c := range map[string]struct {
		post, look func(out http.ResponseWriter) bool
		dies       string
		posted     int
		looks      int
		want       string
	}{
		"all is well":            {posted: 1, looks: 0, want: "posted"},
		"the answer is lost":     {post: status(http.StatusBadGateway), posted: 1, looks: 1, want: "posted"},
		"dies before it":         {dies: "reply claimed", posted: 1, looks: 1, want: "posted"},
		"dies behind it":         {dies: "reply posted", posted: 1, looks: 1, want: "posted"},
		"nobody may look":        {dies: "reply posted", look: status(http.StatusUnauthorized), posted: 1, looks: 1, want: "unknown"},
		"nobody may look, yet":   {dies: "reply posted", look: status(http.StatusTooManyRequests), posted: 1, looks: 10, want: "unknown"},
		"the provider goes down": {post: status(http.StatusBadGateway), look: status(http.StatusBadGateway), posted: 1, looks: 9, want: "unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			w, r := newWorld(t), newRoom(t)
			task := w.spoken(r)
			r.post, r.look = c.post, c.look
			courier := w.courier()
			if c.dies != "" {
				w.killed(task, c.dies)
			}
			for range 12 {
				require.NoError(t, courier.Deliver(t.Context(), task))
				w.passes(2*time.Hour + 10*time.Minute)
			}
			posted, looks := r.counts()
			require.Equal(t, c.posted, posted)
			require.LessOrEqual(t, looks, c.looks)
			require.Equal(t, c.looks > 0, looks > 0)
			require.Equal(t, []string{c.want}, w.statuses())
			if c.want == "posted" {
				require.Equal(t, "C1/1700000000.000100", query[string](w, `select external_id from integration_replies`))
			}
		})
	}
}
