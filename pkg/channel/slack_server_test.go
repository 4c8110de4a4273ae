package channel_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	slackgo "github.com/slack-go/slack"
	"github.com/stretchr/testify/require"
)

// slackServer answers as Slack's API does: of one thread, to one token.
type slackServer struct {
	*httptest.Server
	t      testing.TB
	page   int // messages of a page
	refuse func(w http.ResponseWriter, method string) bool

	mu       sync.Mutex
	calls    []string
	messages []map[string]any
	last     map[string]any // the arguments of the last post
}

const botToken = "xoxb-1-2-3"

func newSlack(t testing.TB) *slackServer {
	s := &slackServer{t: t, page: 200, refuse: func(http.ResponseWriter, string) bool { return false }}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *slackServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	method := strings.TrimPrefix(r.URL.Path, "/api/")
	s.calls = append(s.calls, r.Method+" "+method)
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	switch {
	case s.refuse(w, method):
	case r.Header.Get("Authorization") != "Bearer "+botToken:
		fmt.Fprint(w, `{"ok":false,"error":"invalid_auth"}`)
	case method == "auth.test":
		fmt.Fprintf(w, `%s`, fixture(s.t, "slack/hand.api.auth.test.bot.json"))
	case method == "chat.postMessage":
		s.post(w, r)
	case method == "conversations.replies":
		s.replies(w, r)
	default:
		fmt.Fprint(w, `{"ok":false,"error":"unknown_method"}`)
	}
}

func (s *slackServer) post(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Channel  string                `json:"channel"`
		ThreadTS string                `json:"thread_ts"`
		Markdown string                `json:"markdown_text"`
		Text     string                `json:"text"`
		Metadata slackgo.SlackMetadata `json:"metadata"`
	}
	s.last = map[string]any{}
	raw, _ := readAll(r)
	switch {
	case r.Method != http.MethodPost || !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json"):
		fmt.Fprint(w, `{"ok":false,"error":"invalid_form_data"}`)
		return
	case json.Unmarshal(raw, &in) != nil || json.Unmarshal(raw, &s.last) != nil:
		fmt.Fprint(w, `{"ok":false,"error":"invalid_json"}`)
		return
	case in.Channel != "C111":
		fmt.Fprint(w, `{"ok":false,"error":"channel_not_found"}`)
		return
	case in.Text != "" || in.Markdown == "":
		fmt.Fprint(w, `{"ok":false,"error":"markdown_text_conflict"}`)
		return
	case utf8.RuneCountInString(in.Markdown) > 12_000:
		fmt.Fprint(w, `{"ok":false,"error":"msg_too_long"}`)
		return
	}
	ts := fmt.Sprintf("%d.%06d", 1_700_000_000+len(s.messages), len(s.messages))
	s.messages = append(s.messages, map[string]any{"type": "message", "user": "W111", "bot_id": "B111", "app_id": "A111", "text": in.Markdown, "ts": ts, "thread_ts": in.ThreadTS,
		"metadata": map[string]any{"event_type": in.Metadata.EventType, "event_payload": in.Metadata.EventPayload}})
	fmt.Fprintf(w, `{"ok":true,"channel":"C111","ts":%q,"message":{"text":"x","bot_id":"B111","type":"message","ts":%q}}`, ts, ts)
}

// replies gives the thread's first message, then the others from a moment on, a page at a time.
func (s *slackServer) replies(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("channel") != "C111" || q.Get("ts") != "1700000000.000000" {
		fmt.Fprint(w, `{"ok":false,"error":"thread_not_found"}`)
		return
	}
	oldest, err := strconv.ParseFloat(q.Get("oldest"), 64)
	require.NoError(s.t, err)
	found := []map[string]any{{"type": "message", "user": "W222", "text": "hello", "ts": "1700000000.000000", "thread_ts": "1700000000.000000"}}
	for _, m := range s.messages {
		if at, _ := strconv.ParseFloat(m["ts"].(string), 64); at < oldest {
			continue
		}
		if q.Get("include_all_metadata") != "true" {
			m = map[string]any{"user": m["user"], "ts": m["ts"], "metadata": map[string]any{"event_type": "agentplatform_reply"}}
		}
		found = append(found, m)
	}
	limit, _ := strconv.Atoi(q.Get("limit"))
	from, _ := strconv.Atoi(q.Get("cursor"))
	to, next := from+min(limit, s.page), ""
	if to < len(found) {
		next = strconv.Itoa(to)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"ok": true, "messages": found[from:min(to, len(found))], "has_more": next != "", "response_metadata": map[string]any{"next_cursor": next}})
}

// asked is how often a method was called.
func (s *slackServer) asked(call string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(slices.DeleteFunc(slices.Clone(s.calls), func(c string) bool { return c != call }))
}

// says has the server answer so, whatever it is asked.
func (s *slackServer) says(status int, body string, headers ...string) {
	s.refuse = func(w http.ResponseWriter, _ string) bool {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		fmt.Fprint(w, body)
		return true
	}
}
