package model

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRequestOnTheWire(t *testing.T) {
	s := speak(t, BedrockConfig{}, func(w http.ResponseWriter, _ *http.Request) {
		events(w, "messageStop", `{"stopReason":"end_turn"}`, "metadata", usageEvent)
	})
	request := Request{
		ModelID: "m", System: "Be brief.", MaxTokens: 500,
		Messages: []Message{
			{Role: User, Blocks: []Block{{Text: "first"}}},
			{Role: User, Blocks: []Block{{Text: " "}, {Text: "second"}}},
			{Role: Assistant, Blocks: []Block{{Text: ""}, {ToolUse: &ToolUse{ID: "t1", Name: "look", Input: json.RawMessage(`{"n":12345678901234567890}`)}}}},
			{Role: User, Blocks: []Block{
				{ToolResult: &ToolResult{ToolUseID: "t1", Status: ResultOK, Output: json.RawMessage(`{"a":[1]}`)}},
				{ToolResult: &ToolResult{ToolUseID: "t2", Status: ResultOK, Output: json.RawMessage(`[1,2]`)}},
				{ToolResult: &ToolResult{ToolUseID: "t3", Status: ResultError, Text: "denied"}},
				{ToolResult: &ToolResult{ToolUseID: "t4", Status: ResultOK}},
			}},
			{Role: Assistant, Blocks: nil},
			{Role: User, Blocks: []Block{{Text: "and?"}}},
		},
		Tools: []Tool{{Name: "look", Description: "looks", Schema: json.RawMessage(`{"type":"object","x":1}`)}, {Name: "bare"}},
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
	client, err := NewBedrock(BedrockConfig{Region: "us-east-1", Endpoint: "http://127.0.0.1:1"})
	require.NoError(t, err)
	block := func(b Block) Request {
		return Request{ModelID: "m", Messages: []Message{{Role: User, Blocks: []Block{b}}}}
	}
	for name, r := range map[string]Request{
		"no model":    {Messages: hello.Messages},
		"tool input":  block(Block{ToolUse: &ToolUse{ID: "t", Name: "x", Input: json.RawMessage(`[]`)}}),
		"tool output": block(Block{ToolResult: &ToolResult{ToolUseID: "t", Output: json.RawMessage(`{`)}}),
		"tool schema": {ModelID: "m", Messages: hello.Messages, Tools: []Tool{{Name: "x", Schema: json.RawMessage(`"s"`)}}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := client.Converse(t.Context(), r, nil)
			require.Equal(t, Invalid, reasonOf(t, err).Reason)
		})
	}
}
