package bedrock

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentplatform/agentplatform/pkg/model"
)

func TestRequestOnTheWire(t *testing.T) {
	s := speak(t, Config{}, func(w http.ResponseWriter, _ *http.Request) {
		events(w, "messageStop", `{"stopReason":"end_turn"}`, "metadata", usageEvent)
	})
	request := model.Request{
		ModelID: "m", System: "Be brief.", MaxTokens: 500,
		Messages: []model.Message{
			{Role: model.User, Blocks: []model.Block{{Text: "first"}}},
			{Role: model.User, Blocks: []model.Block{{Text: " "}, {Text: "second"}}},
			{Role: model.Assistant, Blocks: []model.Block{{Text: ""}, {ToolUse: &model.ToolUse{ID: "t1", Name: "look", Input: json.RawMessage(`{"n":12345678901234567890}`)}}}},
			{Role: model.User, Blocks: []model.Block{
				{ToolResult: &model.ToolResult{ToolUseID: "t1", Status: model.ResultOK, Output: json.RawMessage(`{"a":[1]}`)}},
				{ToolResult: &model.ToolResult{ToolUseID: "t2", Status: model.ResultOK, Output: json.RawMessage(`[1,2]`)}},
				{ToolResult: &model.ToolResult{ToolUseID: "t3", Status: model.ResultError, Text: "denied"}},
				{ToolResult: &model.ToolResult{ToolUseID: "t4", Status: model.ResultOK}},
			}},
			{Role: model.Assistant, Blocks: nil},
			{Role: model.User, Blocks: []model.Block{{Text: "and?"}}},
		},
		Tools: []model.Tool{{Name: "look", Description: "looks", Schema: json.RawMessage(`{"type":"object","x":1}`)}, {Name: "bare"}},
	}
	_, err := s.client.Converse(t.Context(), request, nil)
	require.NoError(t, err)
	require.Contains(t, string(s.body), `{"n":12345678901234567890}`, "numbers stay as they are")
	require.JSONEq(t, `{
		"system": [{"text": "Be brief."}],
		"inferenceConfig": {"maxTokens": 500},
		"messages": [
			{"role": "user", "content": [{"text": "first"}, {"text": "second"}]},
			{"role": "assistant", "content": [{"toolUse": {"toolUseId": "t1", "name": "look", "input": {"n": 12345678901234567890}}}]},
			{"role": "user", "content": [
				{"toolResult": {"toolUseId": "t1", "status": "success", "content": [{"json": {"a": [1]}}]}},
				{"toolResult": {"toolUseId": "t2", "status": "success", "content": [{"text": "[1,2]"}]}},
				{"toolResult": {"toolUseId": "t3", "status": "error", "content": [{"text": "denied"}]}},
				{"toolResult": {"toolUseId": "t4", "status": "success", "content": [{"text": "(no output)"}]}},
				{"text": "and?"}
			]}
		],
		"toolConfig": {"tools": [
			{"toolSpec": {"name": "look", "description": "looks", "inputSchema": {"json": {"type": "object", "x": 1}}}},
			{"toolSpec": {"name": "bare", "inputSchema": {"json": {"type": "object"}}}}
		]}
	}`, string(s.body))

	request.Tools = nil
	_, err = s.client.Converse(t.Context(), request, nil)
	require.NoError(t, err)
	got := string(s.body)
	require.Contains(t, got, `{"text":"[called tool look with {\"n\":12345678901234567890}]"}`)
	require.Contains(t, got, `{"text":"[tool result: denied]"}`)
	require.NotContains(t, got, `"toolUse"`)
}

func TestRequestsThatCannotBeSent(t *testing.T) {
	client, err := New(Config{Region: "us-east-1", Endpoint: "http://127.0.0.1:1"})
	require.NoError(t, err)
	block := func(b model.Block) model.Request {
		return model.Request{ModelID: "m", Messages: []model.Message{{Role: model.User, Blocks: []model.Block{b}}}}
	}
	for name, r := range map[string]model.Request{
		"no model":    {Messages: hello.Messages},
		"tool input":  block(model.Block{ToolUse: &model.ToolUse{ID: "t", Name: "x", Input: json.RawMessage(`[]`)}}),
		"tool output": block(model.Block{ToolResult: &model.ToolResult{ToolUseID: "t", Output: json.RawMessage(`{`)}}),
		"tool schema": {ModelID: "m", Messages: hello.Messages, Tools: []model.Tool{{Name: "x", Schema: json.RawMessage(`"s"`)}}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := client.Converse(t.Context(), r, nil)
			require.Equal(t, model.Invalid, reasonOf(t, err).Reason)
		})
	}
}
