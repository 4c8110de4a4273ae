package offline_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/agentplatform/agentplatform/pkg/cloud/bedrock"
	"github.com/agentplatform/agentplatform/pkg/local/offline"
	"github.com/agentplatform/agentplatform/pkg/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts an offline model and gives the real SDK client for it.
func serve(t testing.TB, c offline.Config) (*bedrock.Client, string) {
	t.Helper()
	server := httptest.NewServer(offline.New(c))
	client, err := bedrock.New(bedrock.Config{Region: "us-east-1", Endpoint: server.URL})
	require.NoError(t, err)
	t.Cleanup(func() {
		client.Close()
		server.Close()
	})
	return client, server.URL
}

// retrying asks again almost at once.
func retrying(m model.Model) model.Model {
	return model.NewRetry(m, model.RetryConfig{BaseDelay: time.Millisecond, MaxDelay: 2 * time.Millisecond})
}

// transcript is a Stream that keeps everything.
type transcript struct {
	deltas   []string // since the last restart
	restarts int
	onText   func(n int) // n-th delta of all
	n        int
}

func (s *transcript) Text(delta string) {
	s.deltas = append(s.deltas, delta)
	if s.onText != nil {
		s.onText(s.n)
	}
	s.n++
}

func (s *transcript) Restart() {
	s.deltas = nil
	s.restarts++
}

func (s *transcript) text() string { return strings.Join(s.deltas, "") }

// said is a thread of texts, the user's and the assistant's in turn.
func said(texts ...string) []model.Message {
	var messages []model.Message
	for i, text := range texts {
		role := model.User
		if i%2 == 1 {
			role = model.Assistant
		}
		messages = append(messages, model.Message{Role: role, Blocks: []model.Block{{Text: text}}})
	}
	return messages
}

func ask(t *testing.T, m model.Model, texts ...string) (model.Response, *transcript) {
	t.Helper()
	s := &transcript{}
	r, err := m.Converse(t.Context(), model.Request{ModelID: offline.ModelID, Messages: said(texts...)}, s)
	require.NoError(t, err)
	require.Equal(t, r.Text(), s.text(), "what was streamed is the answer")
	return r, s
}

func TestSayStreamsTheExactText(t *testing.T) {
	m, _ := serve(t, offline.Config{})
	r, s := ask(t, m, `/say one  two\nthree <&> “ü” `)
	require.Equal(t, "one  two\nthree <&> “ü”", r.Text())
	require.Equal(t, []string{"one  ", "two\n", "three ", "<&> ", "“ü”"}, s.deltas)
	require.Equal(t, model.StopEndTurn, r.StopReason)
	require.Equal(t, model.Usage{InputTokens: 8, OutputTokens: 6}, r.Usage)

	r, _ = ask(t, m, "please\n  /say a\nthanks\n/say b")
	require.Equal(t, "a\nb", r.Text())

	words := strings.Repeat("word ", 99) + "end"
	r, s = ask(t, m, "/say "+words)
	require.Equal(t, words, r.Text())
	require.Greater(t, len(s.deltas), 8)
}

func TestEachDeltaArrivesBeforeTheNextIsWritten(t *testing.T) {
	received := make(chan struct{}, 16)
	m, _ := serve(t, offline.Config{BeforeDelta: func(ctx context.Context, n int) {
		if n == 0 {
			return
		}
		select { // the server goes on only when the client has the delta before
		case <-received:
		case <-ctx.Done():
		}
	}})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s := &transcript{onText: func(int) { received <- struct{}{} }}
	_, err := m.Converse(ctx, model.Request{ModelID: "m", Messages: said("/say a b c d")}, s)
	require.NoError(t, err)
	require.Equal(t, []string{"a ", "b ", "c ", "d"}, s.deltas)
}

func TestSlowPausesBetweenTokens(t *testing.T) {
	m, _ := serve(t, offline.Config{})
	started := time.Now()
	_, s := ask(t, m, "/slow 20\n/say "+strings.Repeat("w ", 10))
	require.GreaterOrEqual(t, time.Since(started), 9*20*time.Millisecond)
	require.Len(t, s.deltas, 10)
}

func TestToolRound(t *testing.T) {
	m, _ := serve(t, offline.Config{})
	request := model.Request{
		ModelID: offline.ModelID,
		Messages: said("Please look\n/say Let me see.\n/tool weather {\"city\": \"Oslo\", \"big\": 12345678901234567890}\n" +
			"/tool clock\n/slow 1"),
		Tools: []model.Tool{
			{Name: "weather", Description: "the weather", Schema: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}}}`)},
			{Name: "clock"},
		},
	}
	first, err := m.Converse(t.Context(), request, nil)
	require.NoError(t, err)
	require.Equal(t, model.StopToolUse, first.StopReason)
	require.Equal(t, "Let me see.", first.Text())
	uses := first.ToolUses()
	require.Len(t, uses, 2)
	require.Equal(t, "weather", uses[0].Name)
	require.Equal(t, `{"city":"Oslo","big":12345678901234567890}`, string(uses[0].Input))
	require.Equal(t, "clock", uses[1].Name)
	require.Equal(t, `{}`, string(uses[1].Input))
	require.NotEqual(t, uses[0].ID, uses[1].ID)

	request.Messages = append(request.Messages,
		model.Message{Role: model.Assistant, Blocks: first.Blocks},
		model.Message{Role: model.User, Blocks: []model.Block{
			{ToolResult: &model.ToolResult{ToolUseID: uses[0].ID, Status: model.ResultOK, Output: json.RawMessage(`{"temp": 21.50}`)}},
			{ToolResult: &model.ToolResult{ToolUseID: uses[1].ID, Status: model.ResultError, Text: "no clock here"}},
		}})
	second, err := m.Converse(t.Context(), request, nil)
	require.NoError(t, err)
	require.Equal(t, model.StopEndTurn, second.StopReason)
	require.Equal(t, `The tool weather answered: {"temp":21.50}. The tool clock failed: no clock here.`, second.Text())

	// A message that queued up meanwhile comes with the results and is answered too.
	last := &request.Messages[2]
	last.Blocks = append(last.Blocks, model.Block{Text: "what did I say first?"})
	third, err := m.Converse(t.Context(), request, nil)
	require.NoError(t, err)
	require.Contains(t, third.Text(), "The tool clock failed: no clock here. The first thing you said was “Please look")

	// Without tools the calls of the past are told as text, which Bedrock accepts.
	request.Tools = nil
	_, err = m.Converse(t.Context(), request, nil)
	require.NoError(t, err)
}

func TestFailedAttemptsAreRepeatedAndNothingIsWrittenTwice(t *testing.T) {
	for kind, restarts := range map[string]int{"throttle": 0, "stream": 2, "cut": 2} {
		t.Run(kind, func(t *testing.T) {
			m, _ := serve(t, offline.Config{})
			for range 2 { // answered is forgotten: it fails again
				r, s := ask(t, retrying(m), "/fail "+kind+" 2\n/say one two three four five")
				require.Equal(t, "one two three four five", r.Text())
				require.Equal(t, restarts, s.restarts)
				require.Len(t, s.deltas, 5)
			}
		})
	}
}

func TestFailuresForGood(t *testing.T) {
	for _, c := range []struct {
		line     string
		reason   model.Reason
		attempts int
	}{
		{"/fail throttle", model.Throttled, 5},
		{"/fail stream", model.Broken, 5},
		{"/fail cut", model.Broken, 5},
		{"/fail stream 9", model.Broken, 5},
		{"/fail validation", model.Invalid, 1},
		{"/fail validation 1", model.Invalid, 1},
	} {
		t.Run(c.line, func(t *testing.T) {
			m, url := serve(t, offline.Config{})
			_, err := retrying(m).Converse(t.Context(), model.Request{ModelID: "m", Messages: said(c.line)}, nil)
			var failed *model.Error
			require.ErrorAs(t, err, &failed)
			require.Equal(t, c.reason, failed.Reason)
			require.Equal(t, c.attempts, failed.Attempts)
			require.NotContains(t, failed.Error(), strings.TrimPrefix(url, "http://"))
			require.NotContains(t, failed.Error(), "Exception")
			require.Error(t, failed.Unwrap())
		})
	}
}

// What failed for good stays in the thread without an answer; the message after it must get one.
func TestTheMessageAfterAFailureIsAnswered(t *testing.T) {
	m, _ := serve(t, offline.Config{})
	waiting := []model.Message{{Role: model.User, Blocks: []model.Block{{Text: "/fail validation\n/say first"}, {Text: "/say second"}}}}
	r, err := m.Converse(t.Context(), model.Request{ModelID: "m", Messages: waiting}, nil)
	require.NoError(t, err)
	require.Equal(t, "first\nsecond", r.Text())
}

func TestCancelMidStreamEndsBothSides(t *testing.T) {
	serverEnded := make(chan struct{})
	m, _ := serve(t, offline.Config{BeforeDelta: func(ctx context.Context, n int) {
		if n == 1 {
			<-ctx.Done()
			close(serverEnded)
		}
	}})
	ctx, cancel := context.WithCancel(t.Context())
	s := &transcript{onText: func(int) { cancel() }}
	_, err := retrying(m).Converse(ctx, model.Request{ModelID: "m", Messages: said("/say a b c")}, s)
	var failed *model.Error
	require.ErrorAs(t, err, &failed)
	require.Equal(t, model.Canceled, failed.Reason)
	require.Equal(t, 1, failed.Attempts)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, []string{"a "}, s.deltas)
	<-serverEnded // and TestMain looks for goroutines left over
}

func TestDeadlineMidStream(t *testing.T) {
	m, _ := serve(t, offline.Config{})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	_, err := retrying(m).Converse(ctx, model.Request{ModelID: "m", Messages: said("/slow 5000\n/say a b")}, nil)
	var failed *model.Error
	require.ErrorAs(t, err, &failed)
	require.Equal(t, model.TimedOut, failed.Reason)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestMaxTokensCutsTheAnswer(t *testing.T) {
	m, _ := serve(t, offline.Config{})
	r, err := m.Converse(t.Context(), model.Request{ModelID: "m", Messages: said("/say one two three four"), MaxTokens: 2}, nil)
	require.NoError(t, err)
	require.Equal(t, "one two ", r.Text())
	require.Equal(t, model.StopMaxTokens, r.StopReason)
	require.Equal(t, 2, r.Usage.OutputTokens)
}

func TestTheSameRequestGetsTheSameAnswer(t *testing.T) {
	m, _ := serve(t, offline.Config{})
	for _, text := range []string{"Hello, who are you?", "/tool a\n/tool b {\"x\":1}"} {
		first, _ := ask(t, m, text)
		second, _ := ask(t, m, text)
		require.Equal(t, first, second)
	}
}

func TestManyAtATime(t *testing.T) {
	m, _ := serve(t, offline.Config{})
	errs := make(chan error)
	const n = 64
	for i := range n {
		go func() {
			text := strings.Repeat("x", i+1) + " done"
			r, err := m.Converse(t.Context(), model.Request{ModelID: "m", Messages: said("/say " + text)}, nil)
			if err == nil && r.Text() != text {
				t.Errorf("got %q, want %q", r.Text(), text)
			}
			errs <- err
		}()
	}
	for range n {
		require.NoError(t, <-errs)
	}
}

// TestQuickAnswers guards the request body's life: the SDK closes it when the header of the answer is there, which here is often
// before the transport has finished with it.
func TestQuickAnswers(t *testing.T) {
	m, _ := serve(t, offline.Config{})
	for range 500 {
		ask(t, m, "Hello there, can you help me?")
	}
}
