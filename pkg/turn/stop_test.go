package turn_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/fault"
	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/pkg/thread"
	"github.com/agentplatform/agentplatform/pkg/tool"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// pay is a tool that must not run twice.
func pay(ran *atomic.Int64) tool.Tool {
	return tool.Tool{Name: "pay", Schema: json.RawMessage(`{"type":"object","properties":{"amount":{"type":"integer"}},"required":["amount"]}`),
		Run: func(context.Context, tool.Call) (any, error) {
			ran.Add(1)
			return map[string]string{"receipt": "R-1"}, nil
		}}
}

func (w *world) grant(tools, approvals string) {
	w.t.Helper()
	_, err := w.db.Superuser(w.t).Exec(w.t.Context(), `update agents set tools = $1, approvals = $2`, "{"+tools+"}", "{"+approvals+"}")
	require.NoError(w.t, err)
}

func (w *world) decide(turnID, call string, approve bool) (turn.Decided, error) {
	var out turn.Decided
	err := w.db.App.InTenant(w.t.Context(), w.TenantID, func(tx pgx.Tx) (err error) {
		out, err = turn.Decide(w.t.Context(), tx, w.TenantID, turn.Decision{TurnID: turnID, ToolCallID: call, Approve: approve, UserID: w.UserID})
		return err
	})
	return out, err
}

func (w *world) status(th thread.Thread) thread.Status {
	w.t.Helper()
	got, err := thread.Get(w.t.Context(), w.db.App.In(w.TenantID), th.ID)
	require.NoError(w.t, err)
	return got.Status
}

func (w *world) bodies(th thread.Thread) (out []string) {
	w.t.Helper()
	for _, m := range w.messages(th) {
		out = append(out, string(m.Role)+": "+m.Body)
	}
	return out
}

// uses is an answer that says something and calls tools: name, input, name, input …
func uses(s model.Stream, text string, calls ...string) model.Response {
	answer := model.Response{}
	if text != "" {
		answer = say(s, text)
	}
	for i := 0; i < len(calls); i += 2 {
		answer.Blocks = append(answer.Blocks, model.Block{ToolUse: &model.ToolUse{ID: "call-" + string(rune('1'+i/2)), Name: calls[i], Input: []byte(calls[i+1])}})
	}
	return answer
}

// results are what the model was told of its last calls.
func results(r model.Request) (out []string) {
	for _, b := range r.Messages[len(r.Messages)-1].Blocks {
		if b.ToolResult != nil {
			out = append(out, b.ToolResult.Status+" "+b.ToolResult.Text+string(b.ToolResult.Output))
		}
	}
	return out
}

// asking asks at its first call and says what it learned at the others.
func asking(text string, calls ...string) (script, *[]model.Request) {
	var requests []model.Request
	return func(_ context.Context, r model.Request, s model.Stream) (model.Response, error) {
		requests = append(requests, r)
		if len(results(r)) == 0 {
			return uses(s, text, calls...), nil
		}
		return say(s, "Told: "+strings.Join(results(r), " | ")), nil
	}, &requests
}

func TestAskUserWaitsForTheAnswer(t *testing.T) {
	model, requests := asking("Let me see.", "ask_user", `{"question":"Which one?"}`)
	w := newWorld(t, model)
	w.runner.Tools = tool.Of(tool.AskUser())
	w.grant("ask_user", "")
	th := w.open()
	asked := w.ask(th.ID, "Order it")
	w.run(asked.TurnID)

	waiting := w.turn(asked.TurnID)
	require.Equal(t, turn.Waiting, waiting.Status)
	require.False(t, waiting.Over())
	require.Zero(t, waiting.Attempts, "waiting is no death")
	require.Equal(t, thread.Waiting, w.status(th))
	require.Equal(t, []string{"user: Order it", "assistant: Let me see.\n\nWhich one?"}, w.bodies(th))
	require.Equal(t, publish.Idle, w.events.statuses()[len(w.events.statuses())-1])
	text, done, _ := w.events.streamed()
	first := w.messages(th)[1]
	require.Equal(t, first.Body, text[first.ID])
	require.True(t, done[first.ID])
	require.Equal(t, "ask_user", first.ToolCalls[0].Name)
	require.Empty(t, first.ToolResults)

	w.expireLeases()
	require.Empty(t, w.due(), "nobody but the person makes it go on")
	w.run(asked.TurnID)
	require.Len(t, *requests, 1)

	answered := w.ask(th.ID, "The blue one")
	require.Equal(t, asked.TurnID, answered.TurnID)
	require.Equal(t, thread.Open, w.status(th))
	w.run(asked.TurnID)
	require.Equal(t, []string{"user: Order it", "assistant: Let me see.\n\nWhich one?", "user: The blue one", `assistant: Told: ok {"answer":"The blue one"}`}, w.bodies(th))
	last := w.messages(th)[3]
	require.Empty(t, last.ToolCalls)
	require.Len(t, last.ToolResults, 1)
	text, _, _ = w.events.streamed()
	require.Equal(t, last.Body, text[last.ID])
	require.Equal(t, turn.Succeeded, w.turn(asked.TurnID).Status)
	require.Len(t, w.turn(asked.TurnID).ToolOutcomes, 1)
	require.Len(t, (*requests)[1].Messages, 3, "the question, the model's call, its result; the messages that came of it are not there twice")

	again := w.ask(th.ID, "And now?") // a later turn sees question and answer as the thread has them
	w.run(again.TurnID)
	require.Len(t, (*requests)[2].Messages, 5)
}

func TestOneQuestionAtATime(t *testing.T) {
	model, requests := asking("", "ask_user", `{"question":"One?"}`, "ask_user", `{"question":"Two?"}`)
	w := newWorld(t, model)
	w.runner.Tools = tool.Of(tool.AskUser())
	w.grant("ask_user", "")
	th := w.open()
	asked := w.ask(th.ID, "Go")
	w.run(asked.TurnID)
	require.Equal(t, "assistant: One?", w.bodies(th)[1])
	w.run(w.ask(th.ID, "Yes").TurnID)
	require.Equal(t, []string{`ok {"answer":"Yes"}`, "error not asked: ask one question at a time, and none beside calls that wait for approval"}, results((*requests)[1]))
}

// A message that came before the question waits for its own turn: the question is not put.
func TestAskUserBehindAMessage(t *testing.T) {
	var w *world
	var th thread.Thread
	w = newWorld(t, script(func(_ context.Context, r model.Request, s model.Stream) (model.Response, error) {
		if last(r) == "Go" {
			w.ask(th.ID, "One more thing")
			return uses(s, "", "ask_user", `{"question":"Which?"}`), nil
		}
		return say(s, "ok"), nil
	}))
	w.runner.Tools = tool.Of(tool.AskUser())
	w.grant("ask_user", "")
	th = w.open()
	asked := w.ask(th.ID, "Go")
	w.run(asked.TurnID)
	record := w.turn(asked.TurnID)
	require.Equal(t, turn.Succeeded, record.Status)
	require.Contains(t, *record.ToolOutcomes[0].Error, "the person has written meanwhile")
	require.Len(t, w.dispatched, 1)
}

func TestACallThatAPersonApproves(t *testing.T) {
	var ran atomic.Int64
	model, requests := asking("I pay.", "pay", `{"amount":5}`, "read_thread", `{"threadId":"CHAT-1"}`, "pay", `{"amount":"much"}`)
	w := newWorld(t, model)
	w.runner.Tools["pay"] = pay(&ran)
	w.grant("pay,read_thread", "pay")
	th := w.open()
	asked := w.ask(th.ID, "Pay it")
	w.run(asked.TurnID)
	require.Equal(t, turn.Waiting, w.turn(asked.TurnID).Status)
	require.Equal(t, thread.Waiting, w.status(th))
	require.Equal(t, "assistant: I pay.", w.bodies(th)[1])
	require.Zero(t, ran.Load())
	approvals := w.turn(asked.TurnID).Approvals
	require.Len(t, approvals, 1, "an input that would be refused is not put to anybody")
	require.JSONEq(t, `{"amount":5}`, approvals[0].Input)
	require.Equal(t, turn.Pending, approvals[0].Status)
	require.Equal(t, turn.Approval, *w.turn(asked.TurnID).WaitsFor)

	next := w.ask(th.ID, "By the way") // waits behind
	require.NotEqual(t, asked.TurnID, next.TurnID)
	w.run(next.TurnID)
	require.Equal(t, turn.Queued, w.turn(next.TurnID).Status)
	_, err := w.send(th.ID, "No", turn.Reject)
	require.Equal(t, fault.ValidationError, fault.From(err).Type)

	out, err := w.decide(asked.TurnID, "call-1", true)
	require.NoError(t, err)
	require.Equal(t, asked.TurnID, out.Due)
	again, err := w.decide(asked.TurnID, "call-1", true)
	require.NoError(t, err)
	require.Empty(t, again.Due, "the same decision is one")
	_, err = w.decide(asked.TurnID, "call-1", false)
	require.Equal(t, fault.ValidationError, fault.From(err).Type)
	_, err = w.decide(asked.TurnID, "call-9", true)
	require.Equal(t, fault.NotFound, fault.From(err).Type)

	w.run(asked.TurnID)
	require.EqualValues(t, 1, ran.Load())
	told := results((*requests)[1])
	require.Equal(t, `ok {"receipt":"R-1"}`, told[0])
	require.Contains(t, told[1], `ok [`)
	require.Contains(t, told[2], "error input: ")
	record := w.turn(asked.TurnID)
	require.Equal(t, turn.Succeeded, record.Status)
	require.Equal(t, 1, record.Attempts)
	require.Equal(t, []string{next.TurnID}, w.dispatched)
}

func TestACallThatAPersonRefuses(t *testing.T) {
	var ran atomic.Int64
	model, requests := asking("", "pay", `{"amount":5}`, "pay", `{"amount":6}`)
	w := newWorld(t, model)
	w.runner.Tools["pay"] = pay(&ran)
	w.grant("pay", "pay")
	th := w.open()
	asked := w.ask(th.ID, "Pay it")
	w.run(asked.TurnID)
	out, err := w.decide(asked.TurnID, "call-2", false)
	require.NoError(t, err)
	require.Empty(t, out.Due, "another call still waits")
	out, err = w.decide(asked.TurnID, "call-1", true)
	require.NoError(t, err)
	require.Equal(t, asked.TurnID, out.Due)
	w.run(asked.TurnID)
	require.EqualValues(t, 1, ran.Load())
	require.Equal(t, []string{`ok {"receipt":"R-1"}`, "error a person refused the call"}, results((*requests)[1]))
	require.Equal(t, thread.ToolDenied, w.turn(asked.TurnID).ToolOutcomes[1].Status)
}

func TestACallThatNobodyApproves(t *testing.T) {
	var ran atomic.Int64
	model, requests := asking("", "pay", `{"amount":5}`)
	w := newWorld(t, model)
	w.runner.Tools["pay"] = pay(&ran)
	w.grant("pay", "pay")
	asked := w.ask(w.open().ID, "Pay it")
	w.run(asked.TurnID)
	require.Empty(t, w.due(), "a day is left")
	_, err := w.db.Superuser(t).Exec(t.Context(), `update thread_turns set lease_until = clock_timestamp() - interval '1 second' where status = 'waiting'`)
	require.NoError(t, err)
	require.Equal(t, []string{asked.TurnID}, w.due())
	w.run(asked.TurnID)
	require.Zero(t, ran.Load())
	require.Equal(t, []string{"error nobody approved the call within 24h0m0s"}, results((*requests)[1]))
	require.Equal(t, turn.Succeeded, w.turn(asked.TurnID).Status)
}

// Wherever the process dies around an approved call that must not run twice, it runs once at most, and the model is told when its outcome is unknown.
func TestDeathAroundAnApprovedCall(t *testing.T) {
	for _, point := range []string{"claimed", "tools started", "tools finished"} {
		var ran atomic.Int64
		model, requests := asking("", "pay", `{"amount":5}`)
		w := newWorld(t, model)
		w.runner.Tools["pay"] = pay(&ran)
		w.grant("pay", "pay")
		asked := w.ask(w.open().ID, "Pay it")
		w.die(asked.TurnID, "tools started") // before it has stopped for the person: it stops again
		w.expireLeases()
		w.run(asked.TurnID)
		require.Equal(t, turn.Waiting, w.turn(asked.TurnID).Status)
		_, err := w.decide(asked.TurnID, "call-1", true)
		require.NoError(t, err)
		w.die(asked.TurnID, point)
		w.expireLeases()
		w.run(asked.TurnID)
		require.Equal(t, turn.Succeeded, w.turn(asked.TurnID).Status, point)
		told := results((*requests)[len(*requests)-1])
		switch point {
		case "tools started":
			require.Zero(t, ran.Load())
			require.Equal(t, []string{"error interrupted, outcome unknown"}, told)
		default:
			require.EqualValues(t, 1, ran.Load())
			require.Equal(t, []string{`ok {"receipt":"R-1"}`}, told)
		}
	}
}

func TestInterruptingATurnThatWaits(t *testing.T) {
	var ran atomic.Int64
	model, _ := asking("", "pay", `{"amount":5}`)
	w := newWorld(t, model)
	w.runner.Tools["pay"] = pay(&ran)
	w.grant("pay", "pay")
	th := w.open()
	asked := w.ask(th.ID, "Pay it")
	w.run(asked.TurnID)
	next, err := w.send(th.ID, "Never mind", turn.Interrupt)
	require.NoError(t, err)
	require.Equal(t, turn.Interrupted, w.turn(asked.TurnID).Status)
	_, err = w.decide(asked.TurnID, "call-1", true)
	require.Equal(t, fault.ValidationError, fault.From(err).Type, "it waits for nothing any more")
	w.run(next.TurnID)
	require.NotEqual(t, turn.Queued, w.turn(next.TurnID).Status)
	require.Zero(t, ran.Load())
}

func (w *world) cancel(turnID string) (turn.Decided, error) {
	var out turn.Decided
	err := w.db.App.InTenant(w.t.Context(), w.TenantID, func(tx pgx.Tx) (err error) {
		out, err = turn.Cancel(w.t.Context(), tx, w.TenantID, turnID)
		return err
	})
	return out, err
}

func (w *world) retry(turnID string) (turn.Decided, error) {
	var out turn.Decided
	err := w.db.App.InTenant(w.t.Context(), w.TenantID, func(tx pgx.Tx) (err error) {
		out, err = turn.Retry(w.t.Context(), tx, w.TenantID, turnID)
		return err
	})
	return out, err
}

func TestCancel(t *testing.T) {
	started := make(chan struct{}, 1)
	w := newWorld(t, script(func(ctx context.Context, r model.Request, s model.Stream) (model.Response, error) {
		if last(r) == "Quick" {
			return say(s, "ok"), nil
		}
		s.Text("So far")
		started <- struct{}{}
		<-ctx.Done()
		return model.Response{}, ctx.Err()
	}))
	th := w.open()
	asked := w.ask(th.ID, "Slow")
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.run(asked.TurnID)
	}()
	<-started
	behind := w.ask(th.ID, "Quick")
	out, err := w.cancel(asked.TurnID)
	require.NoError(t, err)
	require.Equal(t, turn.Running, out.Turn.Status)
	<-done
	record := w.turn(asked.TurnID)
	require.Equal(t, turn.Cancelled, record.Status)
	require.Equal(t, "assistant: So far", w.bodies(th)[2])
	out, err = w.cancel(asked.TurnID)
	require.NoError(t, err)
	require.Equal(t, turn.Cancelled, out.Turn.Status)

	out, err = w.cancel(behind.TurnID) // queued
	require.NoError(t, err)
	require.Equal(t, turn.Cancelled, out.Turn.Status)
	w.run(behind.TurnID)
	require.Equal(t, turn.Cancelled, w.turn(behind.TurnID).Status)

	again, err := w.retry(behind.TurnID)
	require.NoError(t, err)
	require.Equal(t, again.Turn.ID, again.Due)
	_, err = w.retry(asked.TurnID)
	require.Equal(t, fault.ValidationError, fault.From(err).Type, "only the last one")
	w.run(again.Due)
	require.Equal(t, turn.Succeeded, w.turn(again.Due).Status)
	_, err = w.retry(again.Due)
	require.Equal(t, fault.ValidationError, fault.From(err).Type, "it has succeeded")
	_, err = w.cancel(again.Due)
	require.Equal(t, fault.ValidationError, fault.From(err).Type)
}

func TestCancelATurnThatWaits(t *testing.T) {
	model, _ := asking("", "ask_user", `{"question":"Which one?"}`)
	w := newWorld(t, model)
	w.runner.Tools = tool.Of(tool.AskUser())
	w.grant("ask_user", "")
	th := w.open()
	asked := w.ask(th.ID, "Order it")
	w.run(asked.TurnID)
	_, err := w.cancel(asked.TurnID)
	require.NoError(t, err)
	require.Equal(t, thread.Open, w.status(th))
	next := w.ask(th.ID, "Something else")
	require.NotEqual(t, asked.TurnID, next.TurnID, "no answer any more")
}

// What a turn said before it failed is not what its repetition is asked.
func TestRetryBeginsAnew(t *testing.T) {
	var requests []model.Request
	w := newWorld(t, script(func(_ context.Context, r model.Request, s model.Stream) (model.Response, error) {
		requests = append(requests, r)
		if len(requests) == 1 {
			return model.Response{}, &model.Error{Message: "the model is broken"}
		}
		return say(s, "Well"), nil
	}))
	th := w.open()
	asked := w.ask(th.ID, "Try")
	w.run(asked.TurnID)
	require.Equal(t, turn.Failed, w.turn(asked.TurnID).Status)
	again, err := w.retry(asked.TurnID)
	require.NoError(t, err)
	w.run(again.Due)
	require.Equal(t, []string{"user: Try", "assistant: Well"}, w.bodies(th))
	require.Equal(t, requests[0].Messages, requests[1].Messages)
}
