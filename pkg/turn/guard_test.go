package turn_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/guardrail"
	"github.com/agentplatform/agentplatform/pkg/guardrail/store"
	"github.com/agentplatform/agentplatform/pkg/model"
	"github.com/agentplatform/agentplatform/pkg/publish"
	"github.com/agentplatform/agentplatform/pkg/thread"
	"github.com/agentplatform/agentplatform/pkg/tool"
	"github.com/agentplatform/agentplatform/pkg/turn"
)

// guard gives the agent a guardrail: what is masked and blocked, at all stages unless some are named.
func (w *world) guard(mask []guardrail.BuiltIn, block string, stages ...guardrail.Stage) guardrail.Guardrail {
	w.t.Helper()
	if stages == nil {
		stages = guardrail.Stages
	}
	rules := []guardrail.Rule{{Stages: stages, Action: guardrail.Block, Topic: &guardrail.Topic{Name: "secret project", Phrases: []string{block}}}}
	if len(mask) > 0 {
		rules = append(rules, guardrail.Rule{Stages: stages, Action: guardrail.Mask, BuiltIn: mask})
	}
	no := "I may not talk about that."
	var g guardrail.Guardrail
	w.tx(func(tx pgx.Tx) (err error) {
		g, err = store.Create(w.t.Context(), tx, w.TenantID, guardrail.Settings{Name: "Strict", Kind: guardrail.Rules, Rules: rules, BlockedInputMessage: &no, BlockedOutputMessage: &no})
		return err
	})
	_, err := w.db.Superuser(w.t).Exec(w.t.Context(), `update agents set guardrail_id = $1`, g.ID)
	require.NoError(w.t, err)
	return g
}

// decisions are a turn's, as "stage action".
func (w *world) decisions(turnID string) (out []string) {
	w.t.Helper()
	for _, d := range w.turn(turnID).GuardrailDecisions {
		out = append(out, string(d.Stage)+" "+string(d.Action))
	}
	return out
}

// everything is all that was given to models and published, and the records that explain it.
func (w *world) everything(requests []model.Request, turnIDs ...string) string {
	w.t.Helper()
	events := w.events.all()
	steps, _ := w.steps(turnIDs[0])
	all, err := json.Marshal([]any{requests, events, steps, w.turn(turnIDs[0])})
	require.NoError(w.t, err)
	return string(all)
}

func TestInputIsMasked(t *testing.T) {
	var requests []model.Request
	w := newWorld(t, script(func(_ context.Context, r model.Request, s model.Stream) (model.Response, error) {
		requests = append(requests, r)
		return say(s, "You said: "+last(r)), nil
	}))
	g := w.guard([]guardrail.BuiltIn{guardrail.EMail}, "bluebird")
	th := w.open()
	asked := w.ask(th.ID, "Write to eve@example.com today")
	w.die(asked.TurnID, "answered") // decided, and not recorded with the answer
	w.expireLeases()
	w.run(asked.TurnID)
	require.Equal(t, "Write to [EMAIL] today", last(requests[0]))
	require.Equal(t, "Write to [EMAIL] today", last(requests[1]))
	require.Equal(t, []string{"input mask"}, w.decisions(asked.TurnID), "once")
	d := w.turn(asked.TurnID).GuardrailDecisions[0]
	require.Equal(t, g.ID, d.GuardrailID)
	require.Equal(t, []guardrail.Span{{Kind: "EMAIL", Start: 9, End: 24}}, d.Spans)
	require.Contains(t, *d.Reason, "e-mail address")
	require.Equal(t, "user: Write to eve@example.com today", w.bodies(th)[0], "what a person wrote stays in the thread")

	later := w.ask(th.ID, "And?")
	w.run(later.TurnID)
	given, err := json.Marshal(requests)
	require.NoError(t, err)
	require.NotContains(t, string(given), "eve@example.com", "nor is it given to a later turn")
	require.Equal(t, []string{"input allow"}, w.decisions(later.TurnID))
	steps, _ := w.steps(asked.TurnID)
	require.NotContains(t, *steps[0].Request, "eve@example.com")
}

func TestBlockedInputNeverReachesTheModel(t *testing.T) {
	var requests []model.Request
	w := newWorld(t, script(func(_ context.Context, r model.Request, s model.Stream) (model.Response, error) {
		requests = append(requests, r)
		return say(s, "ok"), nil
	}))
	w.guard(nil, "bluebird")
	th := w.open()
	asked := w.ask(th.ID, "What is Blue-Bird? And bluebird?")
	w.run(asked.TurnID)
	require.Empty(t, requests)
	require.Equal(t, turn.Succeeded, w.turn(asked.TurnID).Status)
	require.Equal(t, "assistant: I may not talk about that.", w.bodies(th)[1])
	require.Equal(t, []string{"input block"}, w.decisions(asked.TurnID))
	text, done, _ := w.events.streamed()
	reply := w.messages(th)[1]
	require.Equal(t, reply.Body, text[reply.ID])
	require.True(t, done[reply.ID])

	w.run(w.ask(th.ID, "Something else").TurnID)
	require.Len(t, requests, 1)
	given, err := json.Marshal(requests)
	require.NoError(t, err)
	require.NotContains(t, strings.ToLower(string(given)), "bird")
	require.Contains(t, string(given), "[a guardrail has blocked this message]")
}

func TestPayloadsAreChecked(t *testing.T) {
	var requests []model.Request
	w := newWorld(t, script(func(_ context.Context, r model.Request, s model.Stream) (model.Response, error) {
		requests = append(requests, r)
		return say(s, "ok"), nil
	}))
	w.guard([]guardrail.BuiltIn{guardrail.EMail}, "bluebird")
	c, th := w.call(`{"from":"eve@example.com","n":12345678901234567890}`, "A call")
	w.run(c.RunID)
	w.run(w.ask(th.ID, "And?").TurnID)
	require.Len(t, requests, 2)
	given, err := json.Marshal(requests)
	require.NoError(t, err)
	require.NotContains(t, string(given), "eve@example.com")
	require.Contains(t, requests[1].Messages[0].Blocks[1].Text, `{"from":"[EMAIL]","n":12345678901234567890}`)

	c, th = w.call(`{"about":["the bluebird"]}`, "A call")
	w.run(c.RunID)
	require.Len(t, requests, 2)
	require.Equal(t, "assistant: I may not talk about that.", w.bodies(th)[1])
	w.run(w.ask(th.ID, "And?").TurnID)
	given, err = json.Marshal(requests)
	require.NoError(t, err)
	require.NotContains(t, string(given), "bluebird")
}

func TestToolsAreChecked(t *testing.T) {
	var inputs []string
	model, requests := asking("", "look", `{"for":"eve@example.com"}`, "look", `{"for":"bluebird"}`, "look", `{"for":"leak"}`, "look", `{"for":"mail"}`)
	w := newWorld(t, model)
	w.runner.Tools = tool.Of(tool.Tool{Name: "look", Schema: json.RawMessage(`{"type":"object"}`), Run: func(_ context.Context, c tool.Call) (any, error) {
		var in struct{ For string }
		if err := tool.Decode(c.Input, &in); err != nil {
			return nil, err
		}
		switch in.For {
		case "leak":
			return "it is the bluebird", nil
		case "mail":
			return map[string]any{"found": []string{"eve@example.com"}}, nil
		}
		inputs = append(inputs, in.For)
		return "ok", nil
	}})
	w.grant("look", "")
	w.guard([]guardrail.BuiltIn{guardrail.EMail}, "bluebird", guardrail.ToolInput, guardrail.ToolOutput)
	asked := w.ask(w.open().ID, "Look")
	w.run(asked.TurnID)
	require.Equal(t, []string{"[EMAIL]"}, inputs, "the tool is given what is masked, and nothing that is blocked")
	told := results((*requests)[1])
	require.Equal(t, `ok "ok"`, told[0])
	require.Contains(t, told[1], "error a guardrail has blocked it: ")
	require.Contains(t, told[2], "error a guardrail has blocked it: ")
	require.Equal(t, `ok {"found":["[EMAIL]"]}`, told[3])
	require.ElementsMatch(t, []string{"tool_input mask", "tool_input block", "tool_output block", "tool_output mask"}, w.decisions(asked.TurnID))
	require.Equal(t, thread.ToolDenied, w.turn(asked.TurnID).ToolOutcomes[1].Status)
	require.NotContains(t, *w.turn(asked.TurnID).ToolOutcomes[3].Output, "eve@")
}

// Masked text is never shown first, however the model cuts it into pieces, and nobody is given it later.
func TestOutputIsMasked(t *testing.T) {
	var requests []model.Request
	w := newWorld(t, script(func(_ context.Context, r model.Request, s model.Stream) (model.Response, error) {
		requests = append(requests, r)
		if len(requests) == 1 {
			answer := say(s, "Ask e", "ve@exa", "mple.", "com or ", "bob@example.org, ")
			answer.Blocks = append(answer.Blocks, model.Block{Text: "will you"}, model.Block{ToolUse: &model.ToolUse{ID: "1", Name: "read_thread", Input: []byte(`{"threadId":"CHAT-1"}`)}})
			s.Text("will you")
			return answer, nil
		}
		return say(s, "Done."), nil
	}))
	w.guard([]guardrail.BuiltIn{guardrail.EMail}, "bluebird", guardrail.Output)
	w.grant("read_thread", "")
	th := w.open()
	asked := w.ask(th.ID, "Whom?")
	w.run(asked.TurnID)
	require.Equal(t, "assistant: Ask [EMAIL] or [EMAIL], will you\n\nDone.", w.bodies(th)[1])
	text, _, _ := w.events.streamed()
	require.Equal(t, map[string]string{w.messages(th)[1].ID: w.messages(th)[1].Body}, text)
	all := w.everything(requests, asked.TurnID)
	for _, part := range []string{"eve@", "example.com", "bob@", "example.org"} {
		require.NotContains(t, all, part)
	}
	require.Equal(t, []string{"output mask"}, w.decisions(asked.TurnID))
	require.Len(t, requests[1].Messages, 3)
	require.Len(t, requests[1].Messages[1].Blocks, 2, "text and tool use")
}

func TestBlockedOutputIsCutOff(t *testing.T) {
	calls := 0
	w := newWorld(t, script(func(_ context.Context, _ model.Request, s model.Stream) (model.Response, error) {
		calls++
		answer := say(s, "It is called blue", "bird and costs ", "a lot.")
		answer.Blocks = append(answer.Blocks, model.Block{ToolUse: &model.ToolUse{ID: "1", Name: "read_thread", Input: []byte(`{"threadId":"CHAT-1"}`)}})
		return answer, nil
	}))
	w.guard(nil, "bluebird", guardrail.Output)
	w.grant("read_thread", "")
	th := w.open()
	asked := w.ask(th.ID, "What is it?")
	w.run(asked.TurnID)
	require.Equal(t, 1, calls)
	require.Equal(t, "assistant: It is called \n\nI may not talk about that.", w.bodies(th)[1])
	record := w.turn(asked.TurnID)
	require.Equal(t, turn.Succeeded, record.Status)
	require.Empty(t, record.ToolOutcomes, "a blocked answer calls nothing")
	require.Equal(t, 10, record.InputTokens, "and costs what it cost")
	require.NotContains(t, w.everything(nil, asked.TurnID), "bird")
}

func TestRestartBehindAGuardrail(t *testing.T) {
	w := newWorld(t, script(func(_ context.Context, _ model.Request, s model.Stream) (model.Response, error) {
		s.Text("Ask eve@exam")
		s.Restart()
		return say(s, "Ask bob@example.org now"), nil
	}))
	w.guard([]guardrail.BuiltIn{guardrail.EMail}, "bluebird")
	th := w.open()
	asked := w.ask(th.ID, "Whom?")
	w.run(asked.TurnID)
	require.Equal(t, "assistant: Ask [EMAIL] now", w.bodies(th)[1])
	reply := w.messages(th)[1]
	text, _, _ := w.events.streamed()
	require.Equal(t, reply.Body, text[reply.ID])
	for _, e := range w.events.all() {
		if c, ok := e.(publish.StreamChunk); ok {
			require.NotContains(t, c.Chunk, "@")
		}
	}
}

func TestQuestionsAreChecked(t *testing.T) {
	model, _ := asking("", "ask_user", `{"question":"Is it eve@example.com?"}`)
	w := newWorld(t, model)
	w.runner.Tools = tool.Of(tool.AskUser())
	w.grant("ask_user", "")
	w.guard([]guardrail.BuiltIn{guardrail.EMail}, "bluebird", guardrail.Output)
	th := w.open()
	w.run(w.ask(th.ID, "Go").TurnID)
	require.Equal(t, "assistant: Is it [EMAIL]?", w.bodies(th)[1])
}

// A check that cannot be made is no permission.
func TestWhatCannotBeCheckedDoesNotGoOn(t *testing.T) {
	calls := 0
	w := newWorld(t, script(func(_ context.Context, _ model.Request, s model.Stream) (model.Response, error) {
		calls++
		return say(s, "ok"), nil
	}))
	var g guardrail.Guardrail
	w.tx(func(tx pgx.Tx) (err error) {
		g, err = store.Create(t.Context(), tx, w.TenantID, guardrail.Settings{Name: "Managed", Kind: guardrail.Bedrock, Bedrock: &guardrail.Managed{Identifier: "abc123", Version: "1"}})
		return err
	})
	super := w.db.Superuser(t)
	_, err := super.Exec(t.Context(), `update agents set guardrail_id = $1`, g.ID)
	require.NoError(t, err)
	asked := w.ask(w.open().ID, "Hello")
	w.run(asked.TurnID)
	record := w.turn(asked.TurnID)
	require.Equal(t, turn.Failed, record.Status)
	require.Contains(t, *record.Error, "The guardrail could not be checked")

	_, err = super.Exec(t.Context(), `update agents set guardrail_id = null`)
	require.NoError(t, err)
	_, err = super.Exec(t.Context(), `update agent_templates set guardrail_id = 'gone'`)
	require.NoError(t, err)
	asked = w.ask(w.open().ID, "Hello")
	w.run(asked.TurnID)
	require.Equal(t, "The agent's guardrail gone does not exist.", *w.turn(asked.TurnID).Error)
	require.Zero(t, calls)
}
