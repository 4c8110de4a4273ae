package turn_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/notify"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/pkg/thread"
	"github.com/agentplatform/agentplatform/pkg/tool"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

func TestTurnLeavesReplyRecordAndEvents(t *testing.T) {
	w := newWorld(t, script(func(_ context.Context, r model.Request, s model.Stream) (model.Response, error) {
		require.Equal(t, "You are Ada.\n\nAnswer briefly.", r.System)
		require.Equal(t, "read_thread", r.Tools[0].Name)
		return say(s, "Good", " morning"), nil
	}))
	th := w.open()
	asked := w.ask(th.ID, "Hello")
	require.Equal(t, turn.Queued, w.turn(asked.TurnID).Status)
	published := notify.Publish(t.Context(), w.events, w.TenantID, asked.Notices...)
	require.NoError(t, w.runner.Run(t.Context(), turn.Dispatch{TenantID: w.TenantID, TurnID: asked.TurnID, Published: published}))

	messages := w.messages(th)
	require.Len(t, messages, 2)
	reply := messages[1]
	require.Equal(t, thread.Assistant, reply.Role)
	require.Equal(t, "Good morning", reply.Body)
	require.Equal(t, asked.TurnID, *reply.TurnID)
	require.Equal(t, "offline.echo-1", *reply.Model)

	record := w.turn(asked.TurnID)
	require.Equal(t, turn.Succeeded, record.Status)
	require.Equal(t, 1, record.Attempts)
	require.Equal(t, 10, record.InputTokens)
	require.Equal(t, 5, record.OutputTokens)
	require.Equal(t, "0.000004", *record.CostUSD) // 10 × $0.1 + 5 × $0.5 a million tokens = 3.5 micro-dollars, rounded half up
	var names []turn.PhaseName
	for _, p := range record.Phases {
		names = append(names, p.Name)
		require.NotNil(t, p.FinishedAt)
		require.GreaterOrEqual(t, *p.DurationMs, 0.0)
	}
	require.Equal(t, []turn.PhaseName{turn.Perception, turn.Planning, turn.Action, turn.Feedback}, names)
	require.Equal(t, record.Phases[0].StartedAt, *record.StartedAt)
	require.Equal(t, record.Phases[3].FinishedAt, record.FinishedAt)

	text, done, _ := w.events.streamed()
	require.Equal(t, map[string]string{reply.ID: "Good morning"}, text)
	require.True(t, done[reply.ID])
	require.Equal(t, []publish.Activity{publish.Thinking, publish.Streaming, publish.Idle}, w.events.statuses())
	sent := w.events.newMessages()
	require.Len(t, sent, 2)
	require.Equal(t, []string{asked.Message.ID, reply.ID}, []string{sent[0].ID, sent[1].ID})

	var left int
	require.NoError(t, w.db.Superuser(t).QueryRow(t.Context(), `select count(*) from thread_events where undelivered`).Scan(&left))
	require.Zero(t, left)
	got, err := thread.Get(t.Context(), w.db.App.In(w.TenantID), th.ID)
	require.NoError(t, err)
	require.Equal(t, int64(thread.EstimateTokens("Hello")+thread.EstimateTokens("Good morning")), got.TokenCount)
	require.True(t, got.UpdatedAt.After(th.UpdatedAt.Time))

	w.run(asked.TurnID) // a second dispatch finds nothing to do
	require.Len(t, w.messages(th), 2)
}

func TestToolsRunInTheirTurn(t *testing.T) {
	calls := 0
	w := newWorld(t, script(func(_ context.Context, r model.Request, s model.Stream) (model.Response, error) {
		calls++
		if calls == 1 {
			answer := say(s, "Let me look.")
			answer.Blocks = append(answer.Blocks,
				model.Block{ToolUse: &model.ToolUse{ID: "1", Name: "read_thread", Input: []byte(`{"threadId":"CHAT-1"}`)}},
				model.Block{ToolUse: &model.ToolUse{ID: "2", Name: "rm_rf", Input: []byte(`{}`)}},
				model.Block{ToolUse: &model.ToolUse{ID: "3", Name: "read_thread", Input: []byte(`{"nonsense":1}`)}},
				model.Block{ToolUse: &model.ToolUse{ID: "4", Name: "boom", Input: []byte(`{}`)}})
			return answer, nil
		}
		results := r.Messages[len(r.Messages)-1].Blocks
		require.Len(t, results, 4)
		require.Equal(t, model.ResultOK, results[0].ToolResult.Status)
		require.Equal(t, model.ResultError, results[1].ToolResult.Status)
		return say(s, "Done."), nil
	}))
	w.runner.Tools["boom"] = tool.Tool{Name: "boom", Run: func(context.Context, tool.Call) (any, error) { panic("boom") }}
	_, err := w.db.Superuser(t).Exec(t.Context(), `update agent_templates set tools = '{read_thread,boom}'`)
	require.NoError(t, err)
	th := w.open()
	asked := w.ask(th.ID, "Look")
	w.run(asked.TurnID)

	record := w.turn(asked.TurnID)
	require.Equal(t, turn.Succeeded, record.Status)
	var statuses []thread.ToolStatus
	for _, o := range record.ToolOutcomes {
		statuses = append(statuses, o.Status)
	}
	require.Equal(t, []thread.ToolStatus{thread.ToolOK, thread.ToolDenied, thread.ToolError, thread.ToolError}, statuses)
	require.JSONEq(t, `[{"role":"user","body":"Look"}]`, *record.ToolOutcomes[0].Output)
	require.Contains(t, *record.ToolOutcomes[1].Error, "not granted")
	require.Equal(t, "internal error", *record.ToolOutcomes[3].Error)
	require.Equal(t, 20, record.InputTokens)

	reply := w.messages(th)[1]
	require.Equal(t, "Let me look.\n\nDone.", reply.Body)
	require.Len(t, reply.ToolCalls, 4)
	require.Len(t, reply.ToolResults, 4)
	text, _, _ := w.events.streamed()
	require.Equal(t, map[string]string{reply.ID: reply.Body}, text)
	require.Contains(t, w.events.statuses(), publish.CallingTool)
}

func TestTurnFailsWithAReason(t *testing.T) {
	forever := func(context.Context, model.Request, model.Stream) (model.Response, error) {
		return callTool("read_thread", `{"threadId":"CHAT-1"}`), nil
	}
	many := func(context.Context, model.Request, model.Stream) (model.Response, error) {
		answer := callTool("read_thread", `{"threadId":"CHAT-1"}`)
		for range 60 {
			answer.Blocks = append(answer.Blocks, answer.Blocks[0])
		}
		return answer, nil
	}
	for name, c := range map[string]struct {
		model  script
		reason string
	}{
		"the model refuses": {func(context.Context, model.Request, model.Stream) (model.Response, error) {
			return model.Response{}, &model.Error{Reason: model.Denied, Message: "The platform has no access to the agent's language model."}
		}, "The platform has no access to the agent's language model."},
		"an unforeseen error is not shown": {func(context.Context, model.Request, model.Stream) (model.Response, error) {
			return model.Response{}, errors.New("password=hunter2")
		}, "internal error"},
		"tools for ever":           {forever, "the turn asked for more than 25 model calls"},
		"too many tools in a call": {many, "the turn asked for more than 50 tool calls"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.model)
			th := w.open()
			asked := w.ask(th.ID, "Hello")
			w.run(asked.TurnID)
			record := w.turn(asked.TurnID)
			require.Equal(t, turn.Failed, record.Status)
			require.Equal(t, c.reason, *record.Error)
			require.Len(t, w.messages(th), 1)
			require.Equal(t, publish.Failed, w.events.statuses()[len(w.events.statuses())-1])
			w.runner.Model = script(func(_ context.Context, r model.Request, s model.Stream) (model.Response, error) {
				return say(s, "Here again: "+last(r)), nil
			})
			again := w.ask(th.ID, "Hello?")
			w.run(again.TurnID)
			require.Equal(t, "Here again: Hello?", w.messages(th)[2].Body)
		})
	}
}

// A tool's result that is too long for model and record goes back as an error, and the turn goes on.
func TestLongToolResult(t *testing.T) {
	calls := 0
	w := newWorld(t, script(func(_ context.Context, _ model.Request, s model.Stream) (model.Response, error) {
		if calls++; calls == 1 {
			return callTool("read_thread", `{"threadId":"CHAT-1"}`), nil
		}
		return say(s, "It is long."), nil
	}))
	th := w.open()
	asked := w.ask(th.ID, strings.Repeat("x", 100<<10))
	w.run(asked.TurnID)
	record := w.turn(asked.TurnID)
	require.Equal(t, turn.Succeeded, record.Status)
	require.Equal(t, thread.ToolError, record.ToolOutcomes[0].Status)
	require.Equal(t, "the result is longer than 65536 bytes; ask for less", *record.ToolOutcomes[0].Error)
	require.Nil(t, record.ToolOutcomes[0].Output)
}

// A model may say anything that JSON can spell.
func TestModelSaysNUL(t *testing.T) {
	calls := 0
	w := newWorld(t, script(func(_ context.Context, r model.Request, s model.Stream) (model.Response, error) {
		if calls++; calls == 1 {
			return callTool("read_thread", `{"threadId":"\u0000"}`), nil
		}
		return say(s, "be\x00fore", "\x00", "hand"), nil
	}))
	th := w.open()
	asked := w.ask(th.ID, "Hello")
	w.run(asked.TurnID)
	require.Equal(t, turn.Succeeded, w.turn(asked.TurnID).Status)
	require.Equal(t, thread.ToolError, w.turn(asked.TurnID).ToolOutcomes[0].Status)
	reply := w.messages(th)[1]
	require.Equal(t, "beforehand", reply.Body)
	require.Equal(t, `{"threadId":"\u0000"}`, reply.ToolCalls[0].Input)
	text, _, _ := w.events.streamed()
	require.Equal(t, "beforehand", text[reply.ID])
}

// A message that comes while a turn runs is answered by the next turn, and the model sees the conversation in turn order.
func TestMessagesQueueBehindTheRunningTurn(t *testing.T) {
	asking, answer := make(chan struct{}), make(chan struct{})
	var seen [][]string
	w := newWorld(t, script(func(_ context.Context, r model.Request, s model.Stream) (model.Response, error) {
		var bodies []string
		for _, m := range r.Messages {
			bodies = append(bodies, m.Blocks[0].Text)
		}
		seen = append(seen, bodies)
		if len(seen) == 1 {
			close(asking)
			<-answer
		}
		return say(s, fmt.Sprintf("reply %d", len(seen))), nil
	}))
	th := w.open()
	first := w.ask(th.ID, "one")
	done := make(chan error, 1)
	go func() { done <- w.runner.Run(t.Context(), turn.Dispatch{TenantID: w.TenantID, TurnID: first.TurnID}) }()
	<-asking
	second, third := w.ask(th.ID, "two"), w.ask(th.ID, "three")
	require.Equal(t, second.TurnID, third.TurnID)
	require.NotEqual(t, first.TurnID, second.TurnID)
	_, err := w.send(th.ID, "four", turn.Reject)
	require.Equal(t, fault.ValidationError, fault.From(err).Type)
	w.run(second.TurnID) // not while the first runs
	require.Equal(t, turn.Queued, w.turn(second.TurnID).Status)
	close(answer)
	require.NoError(t, <-done)
	require.Equal(t, []string{second.TurnID}, w.dispatched)
	w.run(second.TurnID)

	require.Equal(t, [][]string{{"one"}, {"one", "reply 1", "two", "three"}}, seen)
	var bodies []string
	for i, m := range w.messages(th) {
		bodies = append(bodies, m.Body)
		require.Equal(t, i+1, m.Position)
	}
	require.Equal(t, []string{"one", "two", "three", "reply 1", "reply 2"}, bodies)
}

func TestInterruptKeepsWhatWasSaid(t *testing.T) {
	said := make(chan struct{})
	w := newWorld(t, script(func(ctx context.Context, r model.Request, s model.Stream) (model.Response, error) {
		if last(r) == "stop" {
			return say(s, "stopped"), nil
		}
		s.Text("Once upon a time")
		close(said)
		<-ctx.Done()
		return model.Response{}, &model.Error{Reason: model.Canceled, Message: "The request was cancelled."}
	}))
	th := w.open()
	first := w.ask(th.ID, "Tell me a story")
	done := make(chan error, 1)
	go func() { done <- w.runner.Run(t.Context(), turn.Dispatch{TenantID: w.TenantID, TurnID: first.TurnID}) }()
	<-said
	second, err := w.send(th.ID, "stop", turn.Interrupt)
	require.NoError(t, err)
	require.NoError(t, <-done)
	require.Equal(t, turn.Interrupted, w.turn(first.TurnID).Status)
	require.Equal(t, []string{second.TurnID}, w.dispatched)
	w.run(second.TurnID)
	var bodies []string
	for _, m := range w.messages(th) {
		bodies = append(bodies, m.Body)
	}
	require.Equal(t, []string{"Tell me a story", "stop", "Once upon a time", "stopped"}, bodies)
}

// A model that starts its answer again must not make a subscriber see anything twice.
func TestRestartedAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		model    func(s model.Stream) model.Response
		body     string
		messages int // message ids that subscribers saw
	}{
		"repeats itself": {func(s model.Stream) model.Response {
			s.Text("Good mor")
			s.Restart()
			return say(s, "Good ", "morning")
		}, "Good morning", 1},
		"repeats and stops": {func(s model.Stream) model.Response { s.Text("Good morning"); s.Restart(); return say(s, "Good") }, "Good", 2},
		"says something else": {func(s model.Stream) model.Response {
			s.Text("Good mor")
			s.Restart()
			return say(s, "Good ", "evening")
		}, "Good evening", 2},
		"fails twice": {func(s model.Stream) model.Response {
			s.Text("Go")
			s.Restart()
			s.Text("Goo")
			s.Restart()
			return say(s, "Good")
		}, "Good", 1},
		"fails before any text": {func(s model.Stream) model.Response { s.Restart(); return say(s, "Good") }, "Good", 1},
		"fails while it repeats": {func(s model.Stream) model.Response {
			s.Text("Good mor")
			s.Restart()
			s.Text("Go")
			s.Restart()
			return say(s, "Bad")
		}, "Bad", 2},
		"says nothing": {func(s model.Stream) model.Response { s.Text("x"); s.Restart(); return say(s) }, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, script(func(_ context.Context, _ model.Request, s model.Stream) (model.Response, error) {
				return c.model(s), nil
			}))
			th := w.open()
			asked := w.ask(th.ID, "Hello")
			w.run(asked.TurnID)
			reply := w.messages(th)[1]
			require.Equal(t, c.body, reply.Body)
			text, done, _ := w.events.streamed()
			require.Equal(t, c.body, text[reply.ID])
			require.Len(t, text, c.messages)
			if c.body != "" {
				require.True(t, done[reply.ID])
			}
		})
	}
}

func TestReplyStreamsFromTheFirstToken(t *testing.T) {
	first := make(chan struct{})
	w := newWorld(t, script(func(ctx context.Context, _ model.Request, s model.Stream) (model.Response, error) {
		s.Text("Good")
		<-first // only the subscriber's receipt of the first chunk lets the model go on
		return say(s, " morning"), nil
	}))
	w.events.notify = func(e publish.Event) {
		if c, ok := e.(publish.StreamChunk); ok && c.Chunk == "Good" {
			close(first)
		}
	}
	th := w.open()
	w.run(w.ask(th.ID, "Hello").TurnID)
	_, _, chunks := w.events.streamed()
	require.GreaterOrEqual(t, chunks, 2)
}

func TestHistoryFitsTheTokenBudget(t *testing.T) {
	var seen int
	w := newWorld(t, script(func(_ context.Context, r model.Request, s model.Stream) (model.Response, error) {
		seen = 0
		for _, m := range r.Messages {
			seen += thread.EstimateTokens(m.Blocks[0].Text)
		}
		require.Equal(t, model.User, r.Messages[0].Role)
		return say(s, "ok"), nil
	}))
	th := w.open()
	big := strings.Repeat("word ", 20_000) // 25,000 tokens
	for range 6 {
		w.run(w.ask(th.ID, big).TurnID)
	}
	require.LessOrEqual(t, seen, 100_000)
	require.GreaterOrEqual(t, seen, 75_000)
}

func TestAgentsThatTakeNoTurns(t *testing.T) {
	w := newWorld(t, nil)
	th := w.open()
	for _, status := range []string{"suspended", "archived"} {
		_, err := w.db.Superuser(t).Exec(t.Context(), `update agents set status = $1`, status)
		require.NoError(t, err)
		_, err = w.send(th.ID, "Hello", turn.Enqueue)
		require.Equal(t, fault.Forbidden, fault.From(err).Type)
	}
	require.Empty(t, w.messages(th))
	_, err := w.db.Superuser(t).Exec(t.Context(), `update agents set status = 'active'`)
	require.NoError(t, err)
	asked := w.ask(th.ID, "Hello")
	_, err = w.db.Superuser(t).Exec(t.Context(), `update agents set status = 'suspended'`)
	require.NoError(t, err)
	w.run(asked.TurnID)
	require.Equal(t, "the agent is suspended and takes no turns", *w.turn(asked.TurnID).Error)
}

func TestUnknownRuntimeFailsTheTurn(t *testing.T) {
	w := newWorld(t, nil)
	_, err := w.db.Superuser(t).Exec(t.Context(), `update agent_templates set runtime = 'spaceship'`)
	require.NoError(t, err)
	asked := w.ask(w.open().ID, "Hello")
	w.run(asked.TurnID)
	require.Equal(t, `the runtime "spaceship" is not part of this deployment; name it in AGENT_RUNTIMES, or another one in the agent or its template`, *w.turn(asked.TurnID).Error)
}
