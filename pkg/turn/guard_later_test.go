package turn_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/guardrail"
	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/thread"
	"github.com/agentplatform/agentplatform/pkg/tool"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// listening is a model that says ok, and what it was given.
func listening() (script, *[]model.Request) {
	var requests []model.Request
	return func(_ context.Context, r model.Request, s model.Stream) (model.Response, error) {
		requests = append(requests, r)
		return say(s, "ok"), nil
	}, &requests
}

func text(t *testing.T, requests []model.Request) string {
	t.Helper()
	raw, err := json.Marshal(requests)
	require.NoError(t, err)
	return string(raw)
}

// What a person answers to the agent's question is an input like any other.
func TestAnswersAreChecked(t *testing.T) {
	for answer, told := range map[string]string{
		"Write to eve@example.com": `ok {"answer":"Write to [EMAIL]"}`,
		"Think of the bluebird":    "error a guardrail has blocked it: ",
		"Blue":                     `ok {"answer":"Blue"}`,
	} {
		model, requests := asking("", "ask_user", `{"question":"What now?"}`)
		w := newWorld(t, model)
		w.runner.Tools = tool.Of(tool.AskUser())
		w.grant("ask_user", "")
		w.guard([]guardrail.BuiltIn{guardrail.EMail}, "bluebird", guardrail.Input)
		th := w.open()
		asked := w.ask(th.ID, "Go")
		w.run(asked.TurnID)
		require.Equal(t, asked.TurnID, w.ask(th.ID, answer).TurnID)
		w.run(asked.TurnID)
		require.Equal(t, turn.Succeeded, w.turn(asked.TurnID).Status)
		require.Contains(t, results((*requests)[1])[0], told)
		w.run(w.ask(th.ID, "And?").TurnID)
		given := text(t, *requests)
		require.NotContains(t, given, "eve@")
		require.NotContains(t, given, "bluebird")
		steps, _ := w.steps(asked.TurnID)
		require.NotContains(t, *steps[1].Response, "eve@")
		require.Contains(t, strings.Join(w.bodies(th), "\n"), "user: "+answer, "what a person wrote stays in the thread")
	}
}

// A turn that ended before its input was checked leaves it to those that come after.
func TestWhatNoTurnHasCheckedIsCheckedLater(t *testing.T) {
	model, requests := listening()
	w := newWorld(t, model)
	w.guard([]guardrail.BuiltIn{guardrail.EMail}, "bluebird", guardrail.Input)
	th := w.open()
	for _, body := range []string{"Write to eve@example.com", "Think of the bluebird"} {
		_, err := w.cancel(w.ask(th.ID, body).TurnID)
		require.NoError(t, err)
	}
	w.run(w.ask(th.ID, "Something else").TurnID)
	require.Len(t, *requests, 1, "what an earlier turn was asked does not stop this one")
	given := text(t, *requests)
	require.Contains(t, given, "Write to [EMAIL]")
	require.Contains(t, given, "[a guardrail has blocked this message]")
	require.NotContains(t, given, "eve@")
	require.NotContains(t, given, "bluebird")
}

// A turn that repeats another one is asked what that one was.
func TestARepeatedTurnIsChecked(t *testing.T) {
	model, requests := listening()
	w := newWorld(t, model)
	w.guard([]guardrail.BuiltIn{guardrail.EMail}, "bluebird", guardrail.Input)
	for body, given := range map[string]string{"Write to eve@example.com": "Write to [EMAIL]", "Think of the bluebird": ""} {
		*requests = nil
		th := w.open()
		asked := w.ask(th.ID, body)
		_, err := w.cancel(asked.TurnID)
		require.NoError(t, err)
		again, err := w.retry(asked.TurnID)
		require.NoError(t, err)
		w.run(again.Turn.ID)
		require.Equal(t, turn.Succeeded, w.turn(again.Turn.ID).Status)
		if given == "" {
			require.Empty(t, *requests)
			require.Equal(t, "assistant: I may not talk about that.", w.bodies(th)[1])
			continue
		}
		require.Equal(t, given, last((*requests)[0]))
	}
}

// A guardrail that an agent is given later holds for what was said before, and a webhook's payload too.
func TestAGuardrailHoldsForWhatWasSaidBefore(t *testing.T) {
	model, requests := listening()
	w := newWorld(t, model)
	c, th := w.call(`{"from":"max@example.com"}`, "Write to eve@example.com")
	w.run(c.RunID)
	require.Contains(t, text(t, *requests), "eve@example.com")
	*requests = nil
	w.guard([]guardrail.BuiltIn{guardrail.EMail}, "bluebird", guardrail.Input)
	for range 2 {
		later := w.ask(th.ID, "And?")
		w.run(later.TurnID)
		given := text(t, *requests)
		require.NotContains(t, given, "@example.com")
		require.Contains(t, given, "Write to [EMAIL]")
		require.Contains(t, given, `{\"from\":\"[EMAIL]\"}`)
	}
	require.Equal(t, thread.User, w.messages(th)[0].Role)
	require.Equal(t, "Write to eve@example.com", w.messages(th)[0].Body)
}
