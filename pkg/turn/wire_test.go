package turn_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/cloud/bedrock"
	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/thread"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// speaker is a model that answers over Bedrock's wire format as the test has it: the n-th call by the n-th of its answers, all that follow by the last.
type speaker struct {
	answers []spoken

	mu    sync.Mutex
	calls int
	asked []string // the requests
}

// spoken writes one answer.
type spoken func(w http.ResponseWriter, r *http.Request)

func (s *speaker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var request json.RawMessage
	_ = json.NewDecoder(r.Body).Decode(&request)
	s.mu.Lock()
	n := min(s.calls, len(s.answers)-1)
	s.calls++
	s.asked = append(s.asked, string(request))
	s.mu.Unlock()
	s.answers[n](w, r)
}

// again is the same world for another test at the same time, with a runner and subscribers of its own.
func (w *world) again(t testing.TB) *world {
	runner := *w.runner
	own := &world{World: w.World, t: t, db: w.db, runner: &runner, events: &recorder{}}
	runner.Publish = own.events
	return own
}

// serve has the world's model be the speaker, behind the real client and the pauses between attempts cut short.
func (w *world) serve(answers ...spoken) *speaker {
	s := &speaker{answers: answers}
	server := httptest.NewServer(s)
	client, err := bedrock.New(bedrock.Config{Region: "us-east-1", Endpoint: server.URL, StallWait: 200 * time.Millisecond})
	require.NoError(w.t, err)
	w.t.Cleanup(func() { client.Close(); server.Close() })
	w.runner.Model = model.NewRetry(client, model.RetryConfig{BaseDelay: time.Millisecond, MaxDelay: time.Millisecond})
	return s
}

func frame(w http.ResponseWriter, kind, header, name, payload string) {
	_ = eventstream.NewEncoder().Encode(w, eventstream.Message{Payload: []byte(payload), Headers: eventstream.Headers{
		{Name: ":message-type", Value: eventstream.StringValue(kind)},
		{Name: header, Value: eventstream.StringValue(name)},
		{Name: ":content-type", Value: eventstream.StringValue("application/json")},
	}})
}

// part is a piece of a streamed answer.
type part func(w http.ResponseWriter, r *http.Request)

func event(name, payload string) part {
	return func(w http.ResponseWriter, _ *http.Request) { frame(w, "event", ":event-type", name, payload) }
}

func words(s string) part {
	text, _ := json.Marshal(s)
	return event("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":`+string(text)+`}}`)
}

// use is a call of a tool; input need not be JSON.
func use(index int, id, name, input string) part {
	text, _ := json.Marshal(input)
	return func(w http.ResponseWriter, r *http.Request) {
		event("contentBlockStart", fmt.Sprintf(`{"contentBlockIndex":%d,"start":{"toolUse":{"toolUseId":%q,"name":%q}}}`, index, id, name))(w, r)
		event("contentBlockDelta", fmt.Sprintf(`{"contentBlockIndex":%d,"delta":{"toolUse":{"input":%s}}}`, index, text))(w, r)
		event("contentBlockStop", fmt.Sprintf(`{"contentBlockIndex":%d}`, index))(w, r)
	}
}

func ends(reason string) part {
	return func(w http.ResponseWriter, r *http.Request) {
		event("messageStop", `{"stopReason":"`+reason+`"}`)(w, r)
		event("metadata", `{"usage":{"inputTokens":10,"outputTokens":5,"totalTokens":15}}`)(w, r)
	}
}

// breaks is an exception in the stream, silent a stream that goes on without a word, cut the end of the connection.
func breaks(w http.ResponseWriter, _ *http.Request) {
	frame(w, "exception", ":exception-type", "modelStreamErrorException", `{"message":"no","originalStatusCode":500}`)
}

func silent(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

func cut(w http.ResponseWriter, _ *http.Request) {
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// streams is an answer of these parts.
func streams(parts ...part) spoken {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/vnd.amazon.eventstream")
		event("messageStart", `{"role":"assistant"}`)(w, r)
		for _, p := range parts {
			p(w, r)
		}
	}
}

// refuses is an answer that does not begin.
func refuses(status int, code string) spoken {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Amzn-Errortype", code)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(`{"message":"no"}`))
	}
}

var (
	answers   = streams(words("All good."), ends("end_turn"))
	throttled = refuses(http.StatusTooManyRequests, "ThrottlingException")
	calls     = streams(use(0, "t1", "read_thread", `{"threadId":"CHAT-1"}`), ends("tool_use"))
)

// What a model may do to a turn, over the wire: it is answered all the same, once, or fails with a reason for people; and the thread goes on.
func TestModelsThatFail(t *testing.T) {
	shared := newWorld(t, nil)
	shared.open() // CHAT-1, which tools read
	const brokeOff, unreadable = "The language model's answer broke off before it was complete.", "The language model gave an answer that could not be read."
	many := func(n int) spoken {
		var parts []part
		for i := range n {
			parts = append(parts, use(i, fmt.Sprint("t", i), "read_thread", `{"threadId":"CHAT-1"}`))
		}
		return streams(append(parts, ends("tool_use"))...)
	}
	for name, c := range map[string]struct {
		answers []spoken
		reply   string // of a turn that succeeds
		reason  string // of one that fails
		calls   int    // of the model
		tools   string // the outcomes' statuses
		told    string // in the last request
	}{
		"throttled for a while": {answers: []spoken{throttled, throttled, answers}, reply: "All good.", calls: 3},
		"throttled for good":    {answers: []spoken{throttled}, reason: "The language model is receiving too many requests. Please try again in a moment.", calls: 5},
		"throttled in the stream": {answers: []spoken{streams(words("All"), func(w http.ResponseWriter, _ *http.Request) {
			frame(w, "exception", ":exception-type", "throttlingException", `{"message":"no"}`)
		}), answers}, reply: "All good.", calls: 2},
		"an error in the stream":          {answers: []spoken{streams(words("All go"), breaks), answers}, reply: "All good.", calls: 2},
		"an error, and another answer":    {answers: []spoken{streams(words("Nothing is"), breaks), answers}, reply: "All good.", calls: 2},
		"an error in the stream for good": {answers: []spoken{streams(words("All go"), breaks)}, reason: brokeOff, calls: 5},
		"cut connections":                 {answers: []spoken{streams(words("All go"), cut), streams(cut), answers}, reply: "All good.", calls: 3},
		"cut behind a tool":               {answers: []spoken{calls, streams(words("All go"), cut), answers}, reply: "All good.", calls: 3, tools: "ok"},
		"silent for a while":              {answers: []spoken{streams(words("All"), silent), answers}, reply: "All good.", calls: 2},
		"silent for good":                 {answers: []spoken{streams(silent)}, reason: "The language model did not answer in time.", calls: 5},
		"half a tool's input":             {answers: []spoken{streams(use(0, "t1", "read_thread", `{"threadId":"CH`), ends("tool_use")), calls, answers}, reply: "All good.", calls: 3, tools: "ok"},
		"half a tool's input for good":    {answers: []spoken{streams(use(0, "t1", "read_thread", `{"threadId":"CH`), ends("tool_use"))}, reason: unreadable, calls: 5},
		"half a tool's input at the limit": {answers: []spoken{streams(words("Let me see."), use(1, "t1", "read_thread", `{"threadId":"CH`), ends("max_tokens"))},
			reason: "The language model reached its token limit in the middle of a tool call.", calls: 1},
		"an answer cut at the limit":    {answers: []spoken{streams(words("All goo"), ends("max_tokens"))}, reply: "All goo", calls: 1},
		"tools of one id":               {answers: []spoken{streams(use(0, "t1", "read_thread", `{}`), use(1, "t1", "read_thread", `{}`), ends("tool_use")), answers}, reply: "All good.", calls: 2},
		"tools of one id for good":      {answers: []spoken{streams(use(0, "t1", "read_thread", `{}`), use(1, "t1", "read_thread", `{}`), ends("tool_use"))}, reason: unreadable, calls: 5},
		"a tool that there is not":      {answers: []spoken{streams(use(0, "t1", "read_minds", `{}`), ends("tool_use")), answers}, reply: "All good.", calls: 2, tools: "denied", told: `the tool \"read_minds\" is not granted to this agent`},
		"an input of another tool":      {answers: []spoken{streams(use(0, "t1", "read_thread", `{"url":"x"}`), ends("tool_use")), answers}, reply: "All good.", calls: 2, tools: "error", told: "input: "},
		"an input that is no object":    {answers: []spoken{streams(use(0, "t1", "read_thread", `[1]`), ends("tool_use")), calls, answers}, reply: "All good.", calls: 3, tools: "ok"},
		"tools for ever":                {answers: []spoken{calls}, reason: "the turn asked for more than 25 model calls", calls: 25, tools: strings.TrimSpace(strings.Repeat("ok ", 25))},
		"as many tools as there may be": {answers: []spoken{many(50), answers}, reply: "All good.", calls: 2, tools: strings.TrimSpace(strings.Repeat("ok ", 50))},
		"hundreds of tools":             {answers: []spoken{many(300)}, reason: "the turn asked for more than 50 tool calls", calls: 1},
		"nothing":                       {answers: []spoken{streams(ends("end_turn"))}, reply: "", calls: 1},
		"nothing behind a tool":         {answers: []spoken{calls, streams(ends("end_turn"))}, reply: "", calls: 2, tools: "ok"},
		"refused for good":              {answers: []spoken{refuses(http.StatusForbidden, "AccessDeniedException")}, reason: "The platform has no access to the agent's language model.", calls: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := shared.again(t)
			s := w.serve(c.answers...)
			th := w.open()
			asked := w.ask(th.ID, "Hello")
			w.run(asked.TurnID)
			record := w.turn(asked.TurnID)
			require.Equal(t, c.calls, s.calls)
			statuses := make([]string, len(record.ToolOutcomes))
			for i, o := range record.ToolOutcomes {
				statuses[i] = string(o.Status)
			}
			require.Equal(t, c.tools, strings.Join(statuses, " "))
			require.Contains(t, s.asked[len(s.asked)-1], c.told)
			said := w.messages(th)[1:]
			if c.reason != "" {
				require.Equal(t, turn.Failed, record.Status)
				require.Equal(t, c.reason, *record.Error)
				require.Empty(t, said)
			} else {
				require.Nil(t, record.Error)
				require.Equal(t, turn.Succeeded, record.Status)
				require.Len(t, said, 1)
				require.Equal(t, c.reply, said[0].Body)
				text, done, _ := w.events.streamed()
				require.Equal(t, c.reply, text[said[0].ID])
				require.Equal(t, c.reply != "", done[said[0].ID])
			}

			after := w.serve(streams(words("Here again."), ends("end_turn")))
			next := w.ask(th.ID, "Still there?")
			w.run(next.TurnID)
			require.Equal(t, turn.Succeeded, w.turn(next.TurnID).Status)
			all := w.messages(th)
			require.Equal(t, "Here again.", all[len(all)-1].Body)
			require.Equal(t, thread.Assistant, all[len(all)-1].Role)
			require.NotContains(t, after.asked[0], `"text":""`, "Bedrock takes no empty text")
		})
	}
}
