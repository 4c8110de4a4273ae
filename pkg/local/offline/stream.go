package offline

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
)

// stream writes the answer as an event stream. It flushes after the first text and before every wait, so a reader never waits for
// text that exists; text that follows without a wait shares a packet.
func (h *Handler) stream(w http.ResponseWriter, r *http.Request, out reply) {
	w.Header().Set("Content-Type", "application/vnd.amazon.eventstream")
	s := frames{w: w, flush: http.NewResponseController(w).Flush, encoder: eventstream.NewEncoder()}
	started := time.Now()
	s.event("messageStart", map[string]any{"role": "assistant"})
	fails := out.fail.kind != ""
	text := out.tokens
	if fails {
		text = text[:(len(text)+1)/2]
	}
	for i, piece := range pieces(text, out.slow > 0) {
		if !h.before(r.Context(), &s, i, out.slow) {
			return
		}
		s.event("contentBlockDelta", blockDelta{Delta: delta{Text: piece}})
		if i == 0 {
			s.send()
		}
	}
	if fails {
		s.fail(out.fail.kind)
		return
	}
	index := 0
	if len(text) > 0 {
		s.event("contentBlockStop", map[string]any{"contentBlockIndex": index})
		index++
	}
	for _, use := range out.tools {
		s.tool(index, use)
		index++
	}
	s.event("messageStop", map[string]any{"stopReason": out.stop})
	s.event("metadata", map[string]any{
		"usage": out.usage, "metrics": map[string]any{"latencyMs": time.Since(started).Milliseconds()},
	})
}

// pieces is how the words are put into events: one by one when the answer is slow; else the first eight one by one and then
// eight at a time, since without pauses nobody sees the difference but the processor.
func pieces(words []string, slow bool) []string {
	const single, group = 8, 8
	if slow || len(words) <= single {
		return words
	}
	out := words[:single:single]
	for rest := range slices.Chunk(words[single:], group) {
		out = append(out, strings.Join(rest, ""))
	}
	return out
}

// before waits ahead of piece i; false = the client is gone.
func (h *Handler) before(ctx context.Context, s *frames, i int, slow time.Duration) bool {
	if h.config.BeforeDelta != nil {
		s.send()
		h.config.BeforeDelta(ctx, i)
	}
	if i == 0 || slow == 0 {
		return ctx.Err() == nil
	}
	s.send()
	return pause(ctx, slow)
}

// pause waits for d or the client's end, which makes it false.
func pause(ctx context.Context, d time.Duration) bool {
	if d == 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

type blockDelta struct {
	Index int   `json:"contentBlockIndex"`
	Delta delta `json:"delta"`
}

type delta struct {
	Text    string    `json:"text,omitempty"`
	ToolUse *fragment `json:"toolUse,omitempty"`
}

type fragment struct {
	Input string `json:"input"`
}

// frames writes event stream messages. Write errors are left to the request's context: a client that is gone ends it.
type frames struct {
	w       http.ResponseWriter
	flush   func() error
	encoder *eventstream.Encoder
}

func (f *frames) event(kind string, payload any) { f.message("event", ":event-type", kind, payload) }

func (f *frames) message(kind, header, name string, payload any) {
	raw, _ := json.Marshal(payload) // our own types: cannot fail
	_ = f.encoder.Encode(f.w, eventstream.Message{
		Headers: eventstream.Headers{
			{Name: header, Value: eventstream.StringValue(name)},
			{Name: ":content-type", Value: eventstream.StringValue("application/json")},
			{Name: ":message-type", Value: eventstream.StringValue(kind)},
		},
		Payload: raw,
	})
}

func (f *frames) send() { _ = f.flush() }

// tool writes a tool use, its input in fragments as models do.
func (f *frames) tool(index int, use toolUse) {
	const size = 16
	f.event("contentBlockStart", map[string]any{
		"contentBlockIndex": index,
		"start":             map[string]any{"toolUse": map[string]any{"toolUseId": use.ID, "name": use.Name}},
	})
	for input := []rune(string(use.Input)); len(input) > 0; {
		n := min(size, len(input))
		f.event("contentBlockDelta", blockDelta{Index: index, Delta: delta{ToolUse: &fragment{Input: string(input[:n])}}})
		input = input[n:]
	}
	f.event("contentBlockStop", map[string]any{"contentBlockIndex": index})
}

// fail ends an answer under way: with an exception in the stream, or by cutting the connection.
func (f *frames) fail(kind string) {
	if kind == failCut {
		f.send()
		panic(http.ErrAbortHandler) // net/http's way to close the connection without an end
	}
	f.message("exception", ":exception-type", "modelStreamErrorException", map[string]any{
		"message": "The model failed while it streamed, as the request's /fail line asked for.", "originalStatusCode": 500,
	})
}
