package turn_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/tool"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// steps are a turn's, and the requests that they tell of, put together again.
func (w *world) steps(turnID string) (steps []turn.Step, requests []model.Request) {
	w.t.Helper()
	all, err := turn.Steps(w.t.Context(), w.db.App.In(w.TenantID), []string{turnID})
	require.NoError(w.t, err)
	steps = all[turnID]
	var r model.Request
	for _, s := range steps {
		if s.Kind != "model" || s.Request == nil {
			continue
		}
		var part struct {
			System    *string
			Tools     []model.Tool
			MaxTokens *int
			Messages  []model.Message
		}
		require.NoError(w.t, json.Unmarshal([]byte(*s.Request), &part))
		if part.System != nil {
			r = model.Request{System: *part.System, Tools: part.Tools, MaxTokens: *part.MaxTokens}
		}
		r.ModelID, r.Messages = s.Name, append(r.Messages[:len(r.Messages):len(r.Messages)], part.Messages...)
		requests = append(requests, r)
		if s.Response != nil {
			var answer model.Response
			require.NoError(w.t, json.Unmarshal([]byte(*s.Response), &answer))
			r.Messages = append(r.Messages[:len(r.Messages):len(r.Messages)], model.Message{Role: model.Assistant, Blocks: answer.Blocks})
		}
	}
	return steps, requests
}

// same compares requests as they are sent: by their JSON.
func same(t *testing.T, want, got []model.Request) {
	t.Helper()
	a, err := json.Marshal(want)
	require.NoError(t, err)
	b, err := json.Marshal(got)
	require.NoError(t, err)
	require.JSONEq(t, string(a), string(b))
}

// What the record tells is, to the letter, what the model was given: also across deaths, stops for a person, and what is added to a thread later.
func TestTheRecordTellsWhatTheModelWasGiven(t *testing.T) {
	var asked []model.Request
	w := newWorld(t, script(func(_ context.Context, r model.Request, s model.Stream) (model.Response, error) {
		asked = append(asked, r)
		switch len(asked) {
		case 2:
			return uses(s, "Let me look.", "read_thread", `{"threadId":"CHAT-1"}`, "rm_rf", `{}`), nil
		case 3:
			return uses(s, "", "ask_user", `{"question":"Which?"}`), nil
		}
		return say(s, "Well."), nil
	}))
	w.runner.Tools["ask_user"] = tool.AskUser()
	w.grant("read_thread,ask_user", "")
	th := w.open()
	w.run(w.ask(th.ID, "Hello").TurnID)
	second := w.ask(th.ID, "Look")
	w.die(second.TurnID, "tools started")
	w.expireLeases()
	w.run(second.TurnID) // asks
	w.run(w.ask(th.ID, "The blue one").TurnID)
	require.Equal(t, turn.Succeeded, w.turn(second.TurnID).Status)
	w.run(w.ask(th.ID, "Bye").TurnID)

	steps, told := w.steps(second.TurnID)
	same(t, asked[1:4], told)
	var names []string
	for _, s := range steps {
		names = append(names, s.Kind+" "+s.Name+" "+s.Status)
		require.NotNil(t, s.Response)
		require.NotNil(t, s.FinishedAt)
	}
	m := "model " + asked[0].ModelID + " finished"
	require.Equal(t, []string{m, "tool read_thread finished", "tool rm_rf finished", m, "tool ask_user finished", m}, names)
	require.JSONEq(t, `{"threadId":"CHAT-1"}`, *steps[1].Request)
	require.Contains(t, *steps[2].Response, "not granted")
}

func TestTheRecordOfATurnThatFailed(t *testing.T) {
	var asked []model.Request
	w := newWorld(t, script(func(_ context.Context, r model.Request, _ model.Stream) (model.Response, error) {
		asked = append(asked, r)
		return model.Response{}, &model.Error{Message: "the model is broken"}
	}))
	th := w.open()
	failed := w.ask(th.ID, "Hello")
	queued := w.ask(w.open().ID, "Not yet")
	w.run(failed.TurnID)
	steps, told := w.steps(failed.TurnID)
	same(t, asked, told)
	require.Equal(t, "started", steps[0].Status)
	require.Nil(t, steps[0].Response)

	steps, told = w.steps(queued.TurnID)
	require.Empty(t, steps)
	require.Empty(t, told)
	other := w.db.World(t, "umbrella")
	none, err := turn.Steps(t.Context(), w.db.App.In(other.TenantID), []string{failed.TurnID})
	require.NoError(t, err)
	require.Empty(t, none)
}
