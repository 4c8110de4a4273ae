package bedrock

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/document"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"

	"github.com/agentplatform/agentplatform/pkg/model"
)

// rawDocument hands JSON to the SDK as it is: its own encoder would turn numbers into float64 and back.
type rawDocument struct {
	document.Interface
	raw json.RawMessage
}

func (d rawDocument) MarshalSmithyDocument() ([]byte, error) { return d.raw, nil }

// asDocument wants valid JSON: the SDK writes it into the body unseen.
func asDocument(raw json.RawMessage) document.Interface {
	return rawDocument{Interface: document.NewLazyDocument(nil), raw: raw}
}

// encode turns r into Bedrock's form and evens out what Bedrock refuses: neighbours of the same role are joined, blank texts left
// out, and without tools earlier tool calls are told as text (a thread may be older than its agent's last lost tool).
func encode(r model.Request) (*bedrockruntime.ConverseStreamInput, error) {
	input := &bedrockruntime.ConverseStreamInput{ModelId: aws.String(r.ModelID)}
	if r.ModelID == "" {
		return nil, errors.New("model: no model id")
	}
	if strings.TrimSpace(r.System) != "" {
		input.System = []types.SystemContentBlock{&types.SystemContentBlockMemberText{Value: r.System}}
	}
	if r.MaxTokens > 0 {
		input.InferenceConfig = &types.InferenceConfiguration{MaxTokens: aws.Int32(int32(min(r.MaxTokens, math.MaxInt32)))}
	}
	for i, m := range r.Messages {
		blocks, err := encodeBlocks(m.Blocks, len(r.Tools) > 0)
		if err != nil {
			return nil, fmt.Errorf("model: message %d: %w", i, err)
		}
		if len(blocks) == 0 {
			continue
		}
		role := types.ConversationRole(m.Role)
		if last := len(input.Messages) - 1; last >= 0 && input.Messages[last].Role == role {
			input.Messages[last].Content = append(input.Messages[last].Content, blocks...)
			continue
		}
		input.Messages = append(input.Messages, types.Message{Role: role, Content: blocks})
	}
	if len(r.Tools) == 0 {
		cache(r, input)
		return input, nil
	}
	config := &types.ToolConfiguration{}
	for _, t := range r.Tools {
		tool, err := encodeTool(t)
		if err != nil {
			return nil, err
		}
		config.Tools = append(config.Tools, tool)
	}
	input.ToolConfig = config
	cache(r, input)
	return input, nil
}

func encodeTool(t model.Tool) (types.Tool, error) {
	schema := t.Schema
	if len(schema) == 0 {
		schema = json.RawMessage(`{"type":"object"}`)
	}
	if !isObject(schema) {
		return nil, fmt.Errorf("model: schema of tool %q is not a JSON object", t.Name)
	}
	spec := types.ToolSpecification{
		Name:        aws.String(t.Name),
		InputSchema: &types.ToolInputSchemaMemberJson{Value: asDocument(schema)},
	}
	if t.Description != "" { // may be absent, may not be empty
		spec.Description = aws.String(t.Description)
	}
	return &types.ToolMemberToolSpec{Value: spec}, nil
}

func encodeBlocks(blocks []model.Block, tools bool) ([]types.ContentBlock, error) {
	var out []types.ContentBlock
	for _, b := range blocks {
		switch {
		case b.ToolUse != nil:
			if !isObject(b.ToolUse.Input) {
				return nil, fmt.Errorf("input of tool use %q is not a JSON object", b.ToolUse.ID)
			}
			out = append(out, encodeToolUse(b.ToolUse, tools))
		case b.ToolResult != nil:
			if o := b.ToolResult.Output; len(o) > 0 && !json.Valid(o) {
				return nil, fmt.Errorf("output of tool use %q is not JSON", b.ToolResult.ToolUseID)
			}
			out = append(out, encodeToolResult(b.ToolResult, tools))
		case strings.TrimSpace(b.Text) != "":
			out = append(out, &types.ContentBlockMemberText{Value: b.Text})
		}
	}
	return out, nil
}

func encodeToolUse(u *model.ToolUse, tools bool) types.ContentBlock {
	if !tools {
		return &types.ContentBlockMemberText{Value: fmt.Sprintf("[called tool %s with %s]", u.Name, u.Input)}
	}
	return &types.ContentBlockMemberToolUse{Value: types.ToolUseBlock{
		ToolUseId: aws.String(u.ID), Name: aws.String(u.Name), Input: asDocument(u.Input),
	}}
}

// encodeToolResult sends an object as JSON and everything else as text: Bedrock takes no other JSON value.
func encodeToolResult(r *model.ToolResult, tools bool) types.ContentBlock {
	text := r.Text
	if len(r.Output) > 0 {
		text = string(r.Output)
	}
	if strings.TrimSpace(text) == "" {
		text = "(no output)"
	}
	if !tools {
		return &types.ContentBlockMemberText{Value: "[tool result: " + text + "]"}
	}
	var content types.ToolResultContentBlock = &types.ToolResultContentBlockMemberText{Value: text}
	if isObject(r.Output) {
		content = &types.ToolResultContentBlockMemberJson{Value: asDocument(r.Output)}
	}
	status := types.ToolResultStatusSuccess
	if r.Status != model.ResultOK {
		status = types.ToolResultStatusError
	}
	return &types.ContentBlockMemberToolResult{Value: types.ToolResultBlock{
		ToolUseId: aws.String(r.ToolUseID), Content: []types.ToolResultContentBlock{content}, Status: status,
	}}
}
